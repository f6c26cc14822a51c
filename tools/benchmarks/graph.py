"""What a backward costs as a graph, beside the eager engine's and stock compiled autograd's.

All in one run, one thread, medians, round by round side by side; ratios are to the eager engine. Neither graph is
compiled: ours runs by its generated code (``backend="graph"``), stock's as it is captured. ``--compiled`` compares
``backend="inductor"`` with stock compiled autograd under inductor instead. ``--growth`` shows how the time for printing
a graph grows with its nodes. The gradients of all are compared bit for bit before anything is timed (under inductor:
nearly).
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

from tools.benchmarks._models import MODELS, Model
from tools.benchmarks._ways import Way, alternate, compare, eager, gradients, inside, ratio, timed


@dataclass(frozen=True)
class Row:
    """One model; milliseconds of one backward.

    Attributes:
        model: its name.
        nodes: steps of its plan.
        eager: through the engine.
        graph: the graph, which is held.
        graph_ratio: median of graph to eager, round by round.
        stock: stock compiled autograd, whose graph is held; None where it failed.
        stock_ratio: median of stock to eager.
        first: our first backward: walk, print, compile and run.
        print: printing and compiling, a part of `first`.
        stock_first: stock's first.
        look_up: finding the plan that fits, a part of `graph`.
        failure: why stock has no figures.
    """

    model: str
    nodes: int
    eager: float
    graph: float
    graph_ratio: float
    stock: float | None
    stock_ratio: float | None
    first: float
    print: float
    stock_first: float | None
    look_up: float
    failure: str | None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py graph", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=20, help="rounds of which the median is taken")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument(
        "--no-stock", action="store_true", help="leave stock compiled autograd out: it is slow"
    )
    parser.add_argument("--compiled", action="store_true", help="compile the graphs with inductor")
    parser.add_argument("--growth", action="store_true", help="print graphs of more and more nodes instead")
    parsed = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if parsed.growth:
        return show_growth()
    rows = []
    for make in MODELS:
        torch.manual_seed(0)
        model = make()
        if parsed.only in model.name:
            rows.append(
                measure(model, parsed.rounds, with_stock=not parsed.no_stock, compiled=parsed.compiled)
            )
    if parsed.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return 0


def measure(model: Model, rounds: int, *, with_stock: bool, compiled: bool) -> Row:
    expected = gradients(model, eager)
    backbind.reset()
    session = backbind.capture(backend="inductor" if compiled else "graph")
    ours = inside(lambda: session)
    first = timed(model, ours)
    before = session.session.stats
    for _ in range(model.warm_up):
        check(model, ours, expected, compiled=compiled)
    stats = session.session.stats
    ways: dict[str, Way] = {"eager": eager, "graph": ours}
    stock_first = failure = None
    if with_stock:
        try:
            ways["stock"], stock_first = prepare_stock(model, expected, compiled=compiled)
        except Exception as error:  # whatever it is, the table says so
            failure = f"{type(error).__name__}: {error}".partition("\n")[0]
    times = alternate(model, ways, rounds)
    has_stock = "stock" in times
    return Row(
        model.name,
        (stats.steps - before.steps) // model.warm_up,
        statistics.median(times["eager"]),
        statistics.median(times["graph"]),
        ratio(times, "graph"),
        statistics.median(times["stock"]) if has_stock else None,
        ratio(times, "stock") if has_stock else None,
        first,
        before.compile_seconds * 1e3,
        stock_first,
        (session.session.stats.look_up_seconds - stats.look_up_seconds) * 1e3 / rounds,
        failure,
    )


def prepare_stock(model: Model, expected: list[Tensor], *, compiled: bool) -> tuple[Way, float]:
    stock = inside(
        lambda: compiled_autograd._enable(
            torch.compile(backend="inductor") if compiled else (lambda graph: graph)
        )
    )
    first = timed(model, stock)
    for _ in range(2):  # the second finds the sizes that the first took for fixed
        check(model, stock, expected, compiled=compiled)
    return stock, first


def check(model: Model, way: Way, expected: list[Tensor], *, compiled: bool) -> None:
    if not compiled:
        compare(model, way, expected)
        return
    for ours, theirs in zip(gradients(model, way), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def show_growth() -> int:
    table = Table(title="a chain of operators: milliseconds to print and compile its graph")
    for column in ("nodes", "milliseconds", "microseconds a node"):
        table.add_column(column, justify="right")
    for count in (1_000, 5_000, 10_000, 20_000):
        value = torch.ones(2, requires_grad=True)
        result = value
        for _ in range(count):
            result = result.sin()
        backbind.reset()
        with backbind.capture(backend="graph") as session:
            result.sum().backward()
        seconds = session.stats.compile_seconds
        table.add_row(str(count), f"{seconds * 1e3:.0f}", f"{seconds * 1e6 / count:.0f}")
    Console(width=130).print(table)
    return 0


def show(rows: list[Row]) -> None:
    table = Table(title="milliseconds of one backward, medians; ratios are to the eager engine")
    for column in (
        "model",
        "nodes",
        "eager",
        "graph",
        "ratio",
        "stock",
        "ratio",
        "first",
        "print",
        "stock first",
        "look-up",
    ):
        table.add_column(column, justify="left" if column == "model" else "right")
    console = Console(width=130)
    for row in rows:
        table.add_row(
            row.model,
            str(row.nodes),
            f"{row.eager:.2f}",
            f"{row.graph:.2f}",
            f"{row.graph_ratio:.2f}",
            figure(row.stock),
            figure(row.stock_ratio),
            f"{row.first:.0f}",
            f"{row.print:.0f}",
            figure(row.stock_first, 0),
            f"{row.look_up:.3f}",
        )
    console.print(table)
    for row in rows:
        if row.failure:
            console.print(f"{row.model}: stock compiled autograd failed with {row.failure}", markup=False)


def figure(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
