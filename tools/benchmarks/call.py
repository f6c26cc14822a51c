"""What a call of an operator costs: backbind.ops, torch.ops, the live node, and stock's own binding.

For nodes whose formula does no ATen work (``alias`` hands its gradient on, ``add`` returns it twice) the time is the
cost of the call itself. Stock's own binding is what stock compiled autograd calls from its graphs; its arguments are
recorded from such a graph, so that it does the same work.
"""

import argparse
import json
import statistics
import timeit
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import backbind
import torch
from rich.console import Console
from rich.table import Table
from torch._dynamo import compiled_autograd

Forward = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Row:
    """Microseconds of one call, by the way in which it is made; medians.

    Attributes:
        node: name of the node.
        mode: how its operator is compiled.
        ours: through backbind.ops.
        torch_ops: through the overload in torch.ops.
        live_node: the grad_fn object, called from Python.
        stock: through stock's own binding; None where stock made none.
    """

    node: str
    mode: str
    ours: float
    torch_ops: float
    live_node: float
    stock: float | None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py call", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of which the median is taken")
    parsed = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = [measure(forward, parsed.rounds) for forward in forwards()]
    if parsed.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return 0


def forwards() -> list[Forward]:
    """Forwards whose last node is measured; the first ones do no ATen work in their backward."""
    x, w, b = (torch.randn(4, 4, requires_grad=True) for _ in range(3))
    return [
        lambda: torch.ops.aten.alias(x),
        lambda: x + w,
        lambda: x.view(16),
        lambda: x.tanh(),
        lambda: x * w,
        lambda: torch.addmm(b, x, w),
    ]


def measure(forward: Forward, rounds: int) -> Row:
    """Time the last node of ``forward`` in all ways, round by round side by side."""
    output = forward()
    node: Any = output.grad_fn
    operator = backbind.ops.for_node(node)
    gradient = torch.ones_like(output)
    saved = backbind.pack(node)
    overload = operator.overload
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: operator([gradient], *saved),
        "torch_ops": lambda: overload([gradient], *saved),
        "live_node": lambda: node(gradient),
    }
    stock = stock_call(forward, operator.name)
    if stock is not None:
        ways["stock"] = stock
    times: dict[str, list[float]] = {way: [] for way in ways}
    number = 2000
    with torch.no_grad():
        for _ in range(rounds):
            for way, call in ways.items():
                times[way].append(timeit.timeit(call, number=number) / number * 1e6)
    medians = {way: statistics.median(values) for way, values in times.items()}
    return Row(
        operator.name,
        operator.mode,
        medians["ours"],
        medians["torch_ops"],
        medians["live_node"],
        medians.get("stock"),
    )


def stock_call(forward: Forward, name: str) -> Callable[[], object] | None:
    """Stock's own binding of a node with the arguments that a stock graph gives it."""
    recorded: list[tuple[Any, tuple[Any, ...]]] = []

    def compile_graph(graph: torch.fx.GraphModule) -> Callable[..., Any]:
        stock = getattr(compiled_autograd.ops, name, None)
        if stock is None:
            return graph
        bound = stock.fn

        def record(*args: Any) -> Any:
            recorded.append((bound, args))
            return bound(*args)

        def run(*args: Any) -> Any:
            stock.fn = record
            try:
                return graph(*args)
            finally:
                stock.fn = bound

        return run

    with compiled_autograd._enable(compile_graph):
        forward().sum().backward()
    if not recorded:
        return None
    bound, args = recorded[0]
    return lambda: bound(*args)


def show(rows: list[Row]) -> None:
    table = Table(title="microseconds of one call, medians; the ratio is to stock's own binding")
    for column in ("node", "mode", "backbind.ops", "torch.ops", "live node", "stock", "ratio"):
        table.add_column(column, justify="left" if column in ("node", "mode") else "right")
    for row in rows:
        stock = "-" if row.stock is None else f"{row.stock:.2f}"
        ratio = "-" if row.stock is None else f"{row.ours / row.stock:.2f}"
        table.add_row(
            row.node,
            row.mode,
            f"{row.ours:.2f}",
            f"{row.torch_ops:.2f}",
            f"{row.live_node:.2f}",
            stock,
            ratio,
        )
    Console(width=100).print(table)
