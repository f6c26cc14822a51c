"""What a traced graph cannot hold, and what to do about it, in words."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from backbind._lowering import LoweredStep, Lowering


class TraceError(NotImplementedError):
    """The backward holds something that a traced graph cannot hold yet; the message names all of it."""


_KINDS = {
    "python": "a Python autograd.Function",
    "copy_slices": "a change of a view in place (CopySlices)",
    "cpp": "a C++ function that is not of derivatives.yaml",
}
_UNPACK_HOOKS = "saved tensors with unpack hooks"
_SYMBOLS = "sizes that are symbols, as jagged tensors have"

_ADVICE_HOOKS = "hooks are a user's code: remove them before the trace"
_ADVICE_NODES = (
    "such nodes have no operator: keep them off the way to the inputs, by naming inputs whose gradients do not pass "
    "through them or by a forward without them"
)
_ADVICE_UNPACK_HOOKS = (
    "unpack hooks (of torch.autograd.graph.saved_tensors_hooks, save_on_cpu, checkpoint) are a user's code, which may "
    "recompute and change things: trace(..., unpack_hooks=True) calls each once, as one backward would"
)
_ADVICE_SYMBOLS = "a graph holds sizes as numbers: trace a backward over padded or separate tensors"
_ADVICE_CAPTURE = "backbind.capture() runs all of this as eager does"


def refuse_what_cannot_be_traced(lowering: Lowering, *, unpack_hooks: bool) -> None:
    """Raises TraceError, which names every step that a graph cannot hold. ``unpack_hooks``: they may be called."""
    problems = []
    advice: dict[str, None] = {}  # ordered, each once
    for position, step in enumerate(lowering.steps):
        for problem, remedy in _problems(step, unpack_hooks):
            problems.append(f"  step {position}, {step.node}: {problem}")
            advice[remedy] = None
    if problems:
        raise TraceError(
            "this backward cannot be traced, because of\n"
            + "\n".join(problems)
            + "".join(f"\n{one};" for one in advice)
            + f"\n{_ADVICE_CAPTURE}"
        )


def _problems(step: LoweredStep, unpack_hooks: bool) -> Iterator[tuple[str, str]]:
    if step.hooks:
        yield ", ".join(step.hooks), _ADVICE_HOOKS
    if step.kind is not None:
        yield _KINDS[step.kind], _ADVICE_NODES
    if step.has_unpack_hooks and not unpack_hooks:
        yield _UNPACK_HOOKS, _ADVICE_UNPACK_HOOKS
    expected = [one.sizes for one in step.expected if one is not None]
    if _has_symbols(step.packed) or _has_symbols(expected):
        yield _SYMBOLS, _ADVICE_SYMBOLS


def _has_symbols(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_symbols(item) for item in value)
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)
