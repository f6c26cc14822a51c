"""``python -m backbind.demo``: train, take each backward apart, compare, and print a table."""

from __future__ import annotations

import argparse
import pickle
import sys
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

import backbind
from backbind.demo.network import DigitNetwork
from backbind.demo.training import StepReport, train

COLUMNS: tuple[tuple[str, Callable[[StepReport], str]], ...] = (
    ("step", lambda report: str(report.step)),
    ("loss", lambda report: f"{report.loss:.4f}"),
    ("nodes", lambda report: str(report.nodes)),
    ("operators", lambda report: str(report.operators)),
    ("inline/delegate", lambda report: f"{report.inline}/{report.delegate}"),
    ("largest difference", lambda report: f"{report.largest_difference:g}"),
    ("equal bits", lambda report: "yes" if report.equal_bits else "NO"),
    ("trace ms", lambda report: f"{report.trace_time * 1e3:.1f}"),
    ("graph ms", lambda report: f"{report.graph_time * 1e3:.1f}"),
    ("eager ms", lambda report: f"{report.eager_time * 1e3:.1f}"),
)


def main() -> int:
    """Run the demonstration; 1 if any gradient differs from eager's."""
    parser = argparse.ArgumentParser(prog="python -m backbind.demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="training steps (default: 20)")
    options = parser.parse_args()
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    # A log has no width of its own; the table needs this much.
    console = Console() if sys.stdout.isatty() else Console(width=110)
    console.print(
        f"backbind {backbind.__version__}: {len(backbind.ops)} operators for torch {torch.__version__}"
    )
    console.print(f"training on {len(images)} images of digits, taking the backward apart at every step\n")
    reports = list(train(images, labels, options.steps))
    console.print(_table(reports))
    reloaded = _pickle_round_trip(images[:32], labels[:32])
    console.print(
        f"a traced graph pickled, loaded and run again: {'equal bits' if reloaded else 'DIFFERENT'}"
    )
    good = reloaded and all(report.equal_bits for report in reports)
    gradients = sum(report.parameters for report in reports)
    verdict = "all equal eager's bit for bit" if good else "[bold red]some differ from eager's[/]"
    console.print(f"{gradients} gradients compared: {verdict}")
    return 0 if good else 1


def _table(reports: list[StepReport]) -> Table:
    table = Table(title="backbind.trace against the autograd engine")
    for title, _ in COLUMNS:
        table.add_column(title, justify="right")
    for report in reports:
        table.add_row(*(show(report) for _, show in COLUMNS))
    return table


def _pickle_round_trip(images: torch.Tensor, labels: torch.Tensor) -> bool:
    network = DigitNetwork()
    graph = backbind.trace(torch.nn.functional.cross_entropy(network(images), labels))
    again = pickle.loads(pickle.dumps(graph))
    return all(torch.equal(one, other) for one, other in zip(graph(), again(), strict=True))


if __name__ == "__main__":
    raise SystemExit(main())
