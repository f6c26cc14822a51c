"""``python -m backbind.demo``: training as usual beside training under capture; then operators and graphs."""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from torch import nn

import backbind
from backbind.codegen.command_line import run_command
from backbind.demo.graph import call_node, trace_backwards
from backbind.demo.loop import StepPair, same_weights, train_both, twins, warm_up
from backbind.demo.network import DigitNetwork

Batch = tuple[torch.Tensor, torch.Tensor]
DIFFERENT, UNUSABLE = 1, 2
BATCH = 32
SHOWN_STEPS = (0, 1, 2, 10, 50)
"""Of these steps the table has rows, and of the last one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; 1 if anything differs from eager, 2 if it cannot run."""
    parser = argparse.ArgumentParser(prog="python -m backbind.demo", description=__doc__)
    parser.add_argument("--steps", type=_steps, default=100, help="training steps, at least 2 (default: 100)")
    steps: int = parser.parse_args(arguments).steps
    if importlib.util.find_spec("sklearn") is None:
        print(
            "python -m backbind.demo: the images come with scikit-learn, which is not installed; "
            f"install it: {sys.executable} -m pip install scikit-learn",
            file=sys.stderr,
        )
        return UNUSABLE
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batches = list(_batches(steps))
    good = [_show_training(batches), _show_operators(batches[0]), _show_graph(batches[:10])]
    print("everything equals eager bit for bit" if all(good) else "SOMETHING DIFFERS FROM EAGER, see above")
    return 0 if all(good) else DIFFERENT


def _steps(text: str) -> int:
    # In the first step the plan is made, so there is nothing to compare before the second.
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of training steps; expected at least 2")
    return int(text)


def _batches(count: int) -> Iterator[Batch]:
    """Images ``[BATCH, 1, 8, 8]`` with their labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    for _ in range(count):
        chosen = torch.randint(len(images), (BATCH,))
        yield images[chosen], labels[chosen]


def _show_training(batches: Sequence[Batch]) -> bool:
    eager, captured = twins()
    context = backbind.capture()
    parameters = sum(one.numel() for one in eager.network.parameters())
    print(f"backbind {backbind.__version__}: {len(backbind.ops)} operators for torch {torch.__version__}\n")
    print("1. TRAINING, as usual (eager) and under `with backbind.capture():` (captured)")
    print(
        f"   a network of {parameters:,} parameters with hooks on parameters and modules, on images of digits,"
    )
    print(f"   {BATCH} at a time; the same weights and batches on both sides, by turns, one thread\n")
    print("     step      loss   backward: eager    captured    ratio   loss and gradients", flush=True)
    warm_up(batches[0])
    pairs: list[StepPair] = []
    for pair in train_both(eager, captured, batches, context):
        pairs.append(pair)
        if pair.number in SHOWN_STEPS or pair.number + 1 == len(batches) or not pair.equal_bits:
            print(_row(pair), flush=True)
    print("\n   medians without the first step          eager    captured    ratio")
    later = pairs[1:]
    for title, times in (
        ("backward", [(one.eager.backward, one.captured.backward) for one in later]),
        ("whole step, forward and optimizer too", [(one.eager.whole, one.captured.whole) for one in later]),
    ):
        theirs, ours = (statistics.median(side) for side in zip(*times, strict=True))
        print(f"     {title:<38}{theirs * 1e3:6.2f} ms {ours * 1e3:8.2f} ms   {ours / theirs:6.2f}")
    weights = same_weights(eager, captured)
    hooks = eager.hook_calls == captured.hook_calls
    equal = sum(pair.equal_bits for pair in pairs)
    stats = context.session.stats
    print(f"\n   losses and gradients: equal bits in {equal} of {len(pairs)} steps")
    print(f"   weights after them: {_equal(weights)}")
    print(
        f"   hooks: {len(eager.hook_calls):,} calls by eager, {len(captured.hook_calls):,} captured, "
        f"{'in the same order' if hooks else 'NOT THE SAME'}"
    )
    made = f"{stats.captures} made in {stats.capture_seconds * 1e3:.1f} ms"
    print(f"   plans: {made}, run again for {stats.replays} backwards\n")
    return equal == len(pairs) and weights and hooks


def _row(pair: StepPair) -> str:
    times = f"{pair.eager.backward * 1e3:11.2f} ms {pair.captured.backward * 1e3:8.2f} ms"
    ratio = pair.captured.backward / pair.eager.backward
    note = "; the plan is made" if pair.number == 0 else ""
    return (
        f"    {pair.number + 1:5}   {pair.eager.loss.item():7.4f}   {times}   {ratio:6.2f}   "
        f"{_equal(pair.equal_bits)}{note}"
    )


def _equal(equal: bool) -> str:
    return "equal bits" if equal else "DIFFERENT"


def _show_operators(batch: Batch) -> bool:
    images, labels = batch
    call = call_node(nn.functional.cross_entropy(DigitNetwork()(images), labels))
    operator = call.operator
    print("2. OPERATORS: the node that made the loss, called as a pure function")
    print("   backbind.ops.for_node(loss.grad_fn)([torch.ones(())], *backbind.pack(loss.grad_fn))")
    print(f"   {operator.name}, {operator.mode}, {operator.source}")
    for formula in operator.formulas:
        print(f"   {', '.join(formula.inputs)}: {formula.text}")
    print(f"   its gradient and the node's: {_equal(call.equal_bits)}\n")
    return call.equal_bits


def _show_graph(batches: Sequence[Batch]) -> bool:
    traced = trace_backwards(DigitNetwork(), batches)
    calls = traced.nodes.total()
    often = Counter(traced.nodes).most_common(4)
    print("3. THE GRAPH: the whole backward by `backbind.trace(loss, parameters)`, a torch.fx.GraphModule")
    print(
        f"   {calls} calls of {len(traced.nodes)} operators, {traced.inline} compiled from their formulas; most often"
    )
    print(f"   {', '.join(f'{name} {count}' for name, count in often)}")
    print(
        f"   medians of {traced.count}: trace {traced.trace_time * 1e3:.1f} ms, "
        f"run the graph {traced.graph_time * 1e3:.1f} ms, eager {traced.eager_time * 1e3:.1f} ms"
    )
    print(
        f"   {traced.gradients} gradients: {_equal(traced.equal_bits)}; "
        f"pickled, loaded and run again: {_equal(traced.pickled_equal_bits)}\n"
    )
    return traced.equal_bits and traced.pickled_equal_bits


if __name__ == "__main__":
    sys.exit(run_command(main))
