"""What a backward takes of memory under capture and in the eager engine: its peak, and how often it asks.

Tensors are counted by an allocator in the place of torch's, to the byte. All that malloc gives, tensors among it, is
counted by functions in the place of glibc's, in bytes as malloc rounds them. Peaks are above what is held when the
backward begins. Medians, one thread, side by side in one run; no profiler is on, so replays take their usual way.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass

import backbind
import torch
from rich.console import Console
from rich.table import Table

from tools.benchmarks._meters import MallocMeter, Taken, TensorMeter, preloaded, preloading
from tools.benchmarks._models import MODELS, Model, clear


@dataclass(frozen=True)
class Memory:
    """What one backward takes.

    Attributes:
        tensors: the memory of tensors.
        malloc: all that malloc gives.
    """

    tensors: Taken
    malloc: Taken


@dataclass(frozen=True)
class Row:
    """One model.

    Attributes:
        model: its name.
        eager: through the engine.
        captured: under capture, where a plan is held.
        first: the backward that is captured; its plan stays.
    """

    model: str
    eager: Memory
    captured: Memory
    first: Memory


@dataclass(frozen=True)
class Meters:
    """Both meters."""

    tensors: TensorMeter
    malloc: MallocMeter

    def backward(self, model: Model, surround: AbstractContextManager[object]) -> Memory:
        """Run a backward, and tell what it took."""
        clear(model)
        loss = model.forward()
        with surround:
            self.tensors.start()
            self.malloc.start()
            loss.backward()
            malloc = self.malloc.read()
        return Memory(self.tensors.read(), malloc)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py memory", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the median is taken")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parsed = parser.parse_args(arguments)
    if not preloaded():
        command = [sys.executable, *sys.argv]
        return subprocess.run(command, env=preloading(), check=False).returncode
    torch.set_num_threads(1)
    meters = Meters(TensorMeter(), MallocMeter())
    rows = []
    for make in MODELS:
        torch.manual_seed(0)
        model = make()
        if parsed.only in model.name:
            rows.append(measure(model, meters, parsed.rounds))
    if parsed.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        show(rows)
    return 0


def measure(model: Model, meters: Meters, rounds: int) -> Row:
    # What libraries set up once is nobody's.
    meters.backward(model, nullcontext())
    backbind.reset()
    session = backbind.capture()
    first = meters.backward(model, session)
    eager, captured = [], []
    for _ in range(rounds):
        eager.append(meters.backward(model, nullcontext()))
        captured.append(meters.backward(model, session))
    return Row(model.name, median(eager), median(captured), first)


def median(taken: list[Memory]) -> Memory:
    def of(figure: Callable[[Memory], int]) -> int:
        return statistics.median_low([figure(one) for one in taken])

    return Memory(
        Taken(of(lambda one: one.tensors.peak), of(lambda one: one.tensors.count)),
        Taken(of(lambda one: one.malloc.peak), of(lambda one: one.malloc.count)),
    )


def show(rows: list[Row]) -> None:
    table = Table(
        title="one backward: kilobytes at its peak, and how many allocations; eager, captured, ratio"
    )
    table.add_column("\nmodel")
    for column in ("tensors", "malloc"):
        for figure in (f"{column}\npeak", "\ncaptured", "\nratio", "\ncount", "\ncaptured", "\nratio"):
            table.add_column(figure, justify="right")
    for row in rows:
        cells = []
        for eager, captured in (
            (row.eager.tensors, row.captured.tensors),
            (row.eager.malloc, row.captured.malloc),
        ):
            cells += [
                f"{eager.peak / 1e3:.1f}",
                f"{captured.peak / 1e3:.1f}",
                ratio(eager.peak, captured.peak),
            ]
            cells += [str(eager.count), str(captured.count), ratio(eager.count, captured.count)]
        table.add_row(row.model, *cells)
    Console(width=140).print(table)


def ratio(eager: int, captured: int) -> str:
    return f"{captured / eager:.2f}" if eager else "-"
