"""What importing backbind, which registers all operators, costs beyond importing torch."""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"

_PROBE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
start = time.perf_counter()
import torch
torch_done = time.perf_counter()
import backbind
done = time.perf_counter()
backbind.ops.MulBackward0.record
first_done = time.perf_counter()
[operator.record for operator in backbind.ops]
all_done = time.perf_counter()
print(json.dumps([torch_done - start, done - torch_done, first_done - done, all_done - first_done]))
"""


@dataclass(frozen=True)
class Cost:
    """Seconds, medians over fresh processes.

    Attributes:
        torch: importing torch.
        backbind: importing backbind afterwards, all operators registered.
        first_record: asking for the record of an operator, which imports those of its area (the largest one).
        other_records: asking for all others.
    """

    torch: float
    backbind: float
    first_record: float
    other_records: float


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/bench.py imports", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, default=7, help="fresh processes of which the median is taken")
    parsed = parser.parse_args(arguments)
    cost = measure(parsed.rounds)
    if parsed.json:
        print(json.dumps(asdict(cost)))
    else:
        show(cost)
    return 0


def measure(rounds: int) -> Cost:
    """Import in fresh processes, one after another."""
    runs = [_run() for _ in range(rounds)]
    return Cost(*(statistics.median(column) for column in zip(*runs, strict=True)))


def _run() -> list[float]:
    command = [sys.executable, "-c", _PROBE, str(RUNTIME)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds: list[float] = json.loads(finished.stdout)
    return seconds


def show(cost: Cost) -> None:
    table = Table(title="milliseconds of an import, medians over fresh processes")
    for column in ("what", "ms", "of torch"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("torch", f"{cost.torch * 1e3:.0f}", "1.000")
    table.add_row(
        "backbind, all operators registered",
        f"{cost.backbind * 1e3:.1f}",
        f"{cost.backbind / cost.torch:.3f}",
    )
    table.add_row(
        "the first record", f"{cost.first_record * 1e3:.1f}", f"{cost.first_record / cost.torch:.3f}"
    )
    table.add_row(
        "all other records", f"{cost.other_records * 1e3:.1f}", f"{cost.other_records / cost.torch:.3f}"
    )
    Console(width=100).print(table)
