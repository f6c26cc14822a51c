"""What a backward costs under capture, beside the eager engine's, a flat loop's and stock compiled autograd's.

All in one run, one thread, medians, round by round side by side. Models have one backward; programs, below them in
the table, have several, or graphs that change (tools/benchmarks/_programs.py). Ratios are to the eager engine. The
gradients of all are compared bit for bit before anything is timed. The floor is a flat C++ loop of the ATen calls that
eager makes; tools/benchmarks/_floor.py tells what that contains.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import backbind
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch._dynamo import compiled_autograd

from tools.benchmarks._floor import Floor
from tools.benchmarks._models import MODELS, Model
from tools.benchmarks._programs import PROGRAMS
from tools.benchmarks._ways import Way, alternate, compare, eager, gradients, inside, ratio, timed

STOCK_ROUNDS = 3
"""Fewer, because a round takes seconds."""


@dataclass(frozen=True)
class Stock:
    """Stock compiled autograd on one model, whose graph runs uncompiled.

    Attributes:
        milliseconds: of one backward, its graph being captured already; None where it failed.
        ratio: to the eager engine.
        failure: the first line of its exception, or how its gradients differ.
    """

    milliseconds: float | None = None
    ratio: float | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Row:
    """One model; milliseconds of one backward.

    Attributes:
        model: its name.
        nodes: steps of its plan.
        eager: through the engine.
        captured: under capture, where a plan is held.
        ratio: median of captured to eager, round by round.
        floor: by the flat loop; None where it was not asked for.
        floor_ratio: median of floor to eager, round by round.
        boxed_calls: operators that the flat loop calls in a slower way than eager does, which should be none.
        first: the backward that is captured, walk and run together.
        capture: making the plan, a part of `first`.
        look_up: finding the plan that fits, a part of `captured`.
        stock: through stock compiled autograd; None where it was not asked for.
    """

    model: str
    nodes: int
    eager: float
    captured: float
    ratio: float
    floor: float | None
    floor_ratio: float | None
    boxed_calls: dict[str, int]
    first: float
    capture: float
    look_up: float
    stock: Stock | None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py replay", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of which the median is taken")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument(
        "--no-stock", action="store_true", help="leave stock compiled autograd out: it is slow"
    )
    parser.add_argument(
        "--no-floor", action="store_true", help="leave the flat loop out: it has to be compiled"
    )
    parsed = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for make in (*MODELS, *PROGRAMS):
        torch.manual_seed(0)
        model = make()
        if parsed.only in model.name:
            rows.append(
                measure(model, parsed.rounds, with_stock=not parsed.no_stock, with_floor=not parsed.no_floor)
            )
    if parsed.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return 0


def measure(model: Model, rounds: int, *, with_stock: bool, with_floor: bool) -> Row:
    expected = gradients(model, eager)
    backbind.reset()
    session = backbind.capture()
    captured = inside(lambda: session)
    first = timed(model, captured)
    before = session.session.stats
    for _ in range(model.warm_up):
        compare(model, captured, expected)
    stats = session.session.stats
    nodes = (stats.steps - before.steps) // model.warm_up
    ways: dict[str, Way] = {"eager": eager, "captured": captured}
    floor = Floor(model) if with_floor and model.has_floor else None
    if floor is not None:
        ways["floor"] = lambda _model, _work: floor.run()
        compare(model, ways["floor"], expected)
    times = alternate(model, ways, rounds)
    look_up = (session.session.stats.look_up_seconds - stats.look_up_seconds) * 1e3 / rounds
    return Row(
        model.name,
        nodes,
        statistics.median(times["eager"]),
        statistics.median(times["captured"]),
        ratio(times, "captured"),
        statistics.median(times["floor"]) if floor else None,
        ratio(times, "floor") if floor else None,
        floor.boxed if floor else {},
        first,
        before.capture_seconds * 1e3,
        look_up,
        measure_stock(model, expected) if with_stock and model.has_floor else None,
    )


def measure_stock(model: Model, expected: list[Tensor]) -> Stock:
    stock = inside(lambda: compiled_autograd._enable(lambda graph: graph))
    try:
        for _ in range(2):  # the second finds the sizes that the first took for fixed
            compare(model, stock, expected)
        times = alternate(model, {"eager": eager, "stock": stock}, STOCK_ROUNDS)
    except Exception as error:  # whatever it is, the table says so
        return Stock(failure=f"{type(error).__name__}: {error}".partition("\n")[0])
    return Stock(statistics.median(times["stock"]), ratio(times, "stock"))


def show(rows: list[Row]) -> None:
    table = Table(title="milliseconds of one backward, medians; ratios are to the eager engine")
    for column in (
        "model",
        "nodes",
        "eager",
        "captured",
        "ratio",
        "floor",
        "ratio",
        "first",
        "capture",
        "look-up",
        "stock",
        "ratio",
    ):
        table.add_column(column, justify="left" if column == "model" else "right")
    notes: list[str] = []
    for row in rows:
        stock = row.stock or Stock()
        mark = ""
        if stock.failure:
            notes.append(f"{row.model}: stock compiled autograd failed with {stock.failure}")
            mark = rf" \[{len(notes)}]"  # rich would take a bare one for its own markup
        if row.boxed_calls:
            notes.append(f"{row.model}: the floor is too high, these calls are boxed: {row.boxed_calls}")
        table.add_row(
            row.model,
            str(row.nodes),
            f"{row.eager:.2f}",
            f"{row.captured:.2f}",
            f"{row.ratio:.2f}",
            figure(row.floor),
            figure(row.floor_ratio),
            f"{row.first:.2f}",
            f"{row.capture:.2f}",
            f"{row.look_up:.3f}",
            figure(stock.milliseconds) + mark,
            figure(stock.ratio),
        )
    console = Console(width=130)
    console.print(table)
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}", markup=False)


def figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
