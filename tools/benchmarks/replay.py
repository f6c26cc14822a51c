"""What a backward costs under capture, beside the eager engine's and stock compiled autograd's in the same run.

One thread, medians, round by round side by side. The ratio is to the eager engine; the gradients of all are compared
bit for bit before anything is timed.
"""

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

import backbind
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch._dynamo import compiled_autograd

from tools.benchmarks._models import MODELS, Model

Surround = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Row:
    """One model; milliseconds of one backward.

    Attributes:
        model: its name.
        nodes: steps of its plan.
        eager: through the engine.
        captured: under capture, where a plan is held.
        ratio: median of captured to eager, round by round.
        capture: making the plan, a part of `first`.
        look_up: finding the plan that fits, a part of `captured`.
        first: the backward that is captured, walk and run together.
        stock: through stock compiled autograd, whose graph runs uncompiled; None where it was not asked for or failed.
    """

    model: str
    nodes: int
    eager: float
    captured: float
    ratio: float
    first: float
    capture: float
    look_up: float
    stock: float | None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py replay", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of which the median is taken")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument(
        "--no-stock", action="store_true", help="leave stock compiled autograd out: it is slow"
    )
    parsed = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for make in MODELS:
        torch.manual_seed(0)
        model = make()
        if parsed.only in model.name:
            rows.append(measure(model, parsed.rounds, with_stock=not parsed.no_stock))
    if parsed.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return 0


def measure(model: Model, rounds: int, *, with_stock: bool) -> Row:
    expected = gradients(model, contextlib.nullcontext)
    backbind.reset()
    session = backbind.capture()
    first = timed(model, lambda: session)
    for _ in range(2):
        actual = gradients(model, lambda: session)
        if not all(map(same_bits, expected, actual)):
            raise AssertionError(f"{model.name}: gradients differ from eager's")
    stats = session.session.stats
    nodes, capture, looked_up = stats.steps // 3, stats.capture_seconds * 1e3, stats.look_up_seconds
    eager_times, times = [], []
    for _ in range(rounds):
        eager_times.append(timed(model, contextlib.nullcontext))
        times.append(timed(model, lambda: session))
    return Row(
        model.name,
        nodes,
        statistics.median(eager_times),
        statistics.median(times),
        statistics.median(ours / theirs for ours, theirs in zip(times, eager_times, strict=True)),
        first,
        capture,
        (session.session.stats.look_up_seconds - looked_up) * 1e3 / rounds,
        stock_time(model) if with_stock else None,
    )


def gradients(model: Model, surround: Surround) -> list[Tensor]:
    clear(model)
    loss = model.forward()
    with surround():
        loss.backward()
    return [parameter.grad for parameter in model.parameters if parameter.grad is not None]


def timed(model: Model, surround: Surround) -> float:
    clear(model)
    loss = model.forward()
    start = time.perf_counter()
    with surround():
        loss.backward()
    return (time.perf_counter() - start) * 1e3


def clear(model: Model) -> None:
    for parameter in model.parameters:
        parameter.grad = None


def same_bits(left: Tensor, right: Tensor) -> bool:
    if left.layout != torch.strided:
        left, right = left.to_dense(), right.to_dense()
    return torch.equal(left.view(torch.int32), right.view(torch.int32))


def stock_time(model: Model) -> float | None:
    def surround() -> AbstractContextManager[object]:
        return compiled_autograd._enable(lambda graph: graph)

    try:
        return statistics.median(timed(model, surround) for _ in range(4))
    except Exception:
        return None


def show(rows: list[Row]) -> None:
    table = Table(title="milliseconds of one backward, medians; the ratio is to the eager engine")
    for column in (
        "model",
        "nodes",
        "eager",
        "captured",
        "ratio",
        "first",
        "capture",
        "look-up",
        "stock",
        "stock ratio",
    ):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        table.add_row(
            row.model,
            str(row.nodes),
            f"{row.eager:.2f}",
            f"{row.captured:.2f}",
            f"{row.ratio:.2f}",
            f"{row.first:.2f}",
            f"{row.capture:.2f}",
            f"{row.look_up:.3f}",
            "-" if row.stock is None else f"{row.stock:.2f}",
            "-" if row.stock is None else f"{row.stock / row.eager:.2f}",
        )
    Console(width=130).print(table)
