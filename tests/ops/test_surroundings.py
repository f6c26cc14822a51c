"""Where a live node would give something else, an operator does not; and what wants to see its calls sees them.

test_purity.py goes through the surroundings one by one; here they are proved to matter, combined, and left as they
were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, tensors_of
from tests.ops.ways import WAYS, Way

Call = Callable[[], Any]


def _case(node: str) -> NodeCase:
    return next(case for case in NODE_SET if case.node == node)


def _constant(value: Any) -> Any:
    """The same values without history, so that a call builds no graph."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return type(value)(_constant(one) for one in value) if isinstance(value, list | tuple) else value


def _same(actual: Sequence[Tensor | None], expected: Sequence[Tensor | None], called: str) -> None:
    assert [one is None for one in actual] == [one is None for one in expected], called
    assert all_same_bits(actual, expected), called


def in_hook_of_grad(call: Call) -> Any:
    """Call while a backward runs that wants the gradient of one leaf only."""
    results: list[Any] = []
    with torch.enable_grad():
        leaf = torch.ones(2, requires_grad=True)
        between = leaf * 2
        between.register_hook(lambda _: results.append(call()))
        torch.autograd.grad((between * 3).sum(), leaf)
    return results[0]


def under_refusing_hooks(call: Call) -> Any:
    def refuse(_: object) -> Tensor:
        raise AssertionError("a hook for saved tensors fired")

    with saved_tensors_hooks(refuse, refuse):
        return call()


def under_changing_hooks(call: Call) -> Any:
    with saved_tensors_hooks(lambda tensor: tensor.detach() * 0 + 7, lambda tensor: tensor * 0 - 5):
        return call()


def in_inference_mode(call: Call) -> Any:
    with torch.inference_mode():
        return call()


def in_anomaly_mode(call: Call) -> Any:
    with torch.autograd.set_detect_anomaly(True):
        return call()


_TRAPS = (in_hook_of_grad, under_refusing_hooks, under_changing_hooks, in_inference_mode, in_anomaly_mode)


@pytest.mark.parametrize("outer", _TRAPS, ids=lambda trap: trap.__name__)
@pytest.mark.parametrize("made_in_inference_mode", [False, True], ids=["ordinary", "inference tensors"])
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_traps_inside_traps(outer: Callable[[Call], Any], made_in_inference_mode: bool) -> None:
    for case in NODE_SET:
        made = case.make()
        with torch.no_grad():
            expected = made.expected()
        with torch.inference_mode(made_in_inference_mode):
            grads, packed = _constant(made.grads), _constant(made.packed)
        assert all(one.is_inference() == made_in_inference_mode for one in tensors_of((grads, packed)))
        for inner in _TRAPS:
            if (outer, inner) == (in_inference_mode, in_hook_of_grad):
                continue  # no backward runs there
            call = partial(_without_grad, partial(made.operator.delegate, grads, *packed))
            _same(outer(partial(inner, call)), expected, f"{case}, {inner.__name__}")


def _without_grad(call: Call) -> Any:
    with torch.no_grad():
        return call()


@pytest.mark.parametrize("enabled", [False, True], ids=["no_grad", "enable_grad"])
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_grad_mode_acts_as_on_the_live_node(case: NodeCase, enabled: bool) -> None:
    made = case.make()
    with torch.set_grad_enabled(enabled):
        expected = made.expected()
        for way in WAYS:
            actual = way.call(made.operator, made.grads, made.packed)
            _same(actual, expected, str(way))
            assert [_history(one) for one in actual] == [_history(one) for one in expected]


def _history(tensor: Tensor | None) -> tuple[bool, str]:
    if tensor is None:
        return False, "None"
    return tensor.requires_grad, "none" if tensor.grad_fn is None else tensor.grad_fn.name()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_autocast_changes_nothing(case: NodeCase, dtype: torch.dtype) -> None:
    made = _in_single_precision(case).make()
    expected = made.expected()
    for way in WAYS:
        for cache_enabled in (True, False):
            with torch.autocast("cpu", dtype=dtype, cache_enabled=cache_enabled):
                _same(way.call(made.operator, made.grads, made.packed), expected, str(way))
                assert torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype == dtype, (
                    "autocast is off behind the call"
                )


def _in_single_precision(case: NodeCase) -> NodeCase:
    """Autocast leaves double precision alone."""
    return case if case.dtype.is_complex else replace(case, dtype=torch.float32)


def test_autocast_changes_a_live_node() -> None:
    made = _in_single_precision(_case("MmBackward0")).make()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        gradients = made.expected()
    assert [one.dtype for one in gradients if one is not None] == [torch.bfloat16] * 2


def test_a_backward_that_wants_other_gradients_changes_a_live_node() -> None:
    made = _case("MulBackward0").make()
    assert in_hook_of_grad(made.expected) == [None, None]


def test_hooks_for_saved_tensors_change_a_live_node() -> None:
    leaf = torch.ones(2, requires_grad=True)
    out = under_changing_hooks(lambda: leaf * leaf)
    (gradient,) = torch.autograd.grad(out.sum(), leaf)
    assert gradient.tolist() == [-10.0, -10.0]


def test_inference_mode_changes_a_live_node() -> None:
    with torch.inference_mode():
        value = torch.ones(2)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.ones(2, requires_grad=True) * value


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_failing_call_leaves_its_surroundings(way: Way) -> None:
    """What a call switches off is on again behind it."""
    made = _case("MmBackward0").make()
    packed = _constant(made.packed)
    fired: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        fired.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor), torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(3):
            with pytest.raises((RuntimeError, ValueError)):
                way.call(made.operator, [torch.ones(7, 11, 13)], packed)
        assert torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype == torch.bfloat16
        assert fired == []
        torch.ones(2, requires_grad=True).exp()
    assert len(fired) == 1
    assert in_hook_of_grad(lambda: way.call(made.operator, made.grads, packed))[0] is not None


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_results_written_to_do_not_reach_later_calls(case: NodeCase) -> None:
    """Results may be views of the arguments, as a live node's may, but of nothing that an operator keeps."""
    made = case.make()
    for way in WAYS:

        def call(made: Made = made, way: Way = way) -> list[Tensor | None]:
            return way.call(made.operator, _constant(made.grads), _constant(made.packed))

        expected = [None if one is None else one.clone() for one in call()]
        for result in call():
            if result is not None and torch._debug_has_internal_overlap(result) == 0:
                result.zero_()
        _same(call(), expected, str(way))


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_the_random_state_is_left_alone(case: NodeCase) -> None:
    made = case.make()
    state = torch.get_rng_state()
    for way in WAYS:
        way.call(made.operator, made.grads, made.packed)
    assert torch.equal(torch.get_rng_state(), state)


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.ops.aten.detach.default:  # how a node takes out what it keeps
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class _FunctionRecorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


_SEEN = tuple(way for way in WAYS if way.name != "delegate")


@pytest.mark.parametrize("way", _SEEN, ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_a_dispatch_mode_sees_what_the_live_node_does(case: NodeCase, way: Way) -> None:
    made = case.make()
    grads, packed = made.grads, made.packed
    with torch.no_grad(), _Recorder() as live:
        expected = made.node(*grads)  # type: ignore[operator]
    with torch.no_grad(), _Recorder() as actual:
        results = way.call(made.operator, grads, packed)
    assert actual.seen == live.seen
    _same(results, expected if isinstance(expected, tuple) else [expected], str(way))
    with torch.inference_mode():  # where modes come before the keys at which composite operators decompose
        with _Recorder() as live:
            made.node(*grads)  # type: ignore[operator]
        grads, packed = _constant(made.grads), _constant(made.packed)
        with _Recorder() as actual:
            again = way.call(made.operator, grads, packed)
    _same(again, results, str(way))
    assert actual.seen == live.seen


@pytest.mark.parametrize("way", _SEEN, ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_a_function_mode_sees_the_operator(case: NodeCase, way: Way) -> None:
    made = case.make()
    operator, grads, packed, expected = made.operator, made.grads, made.packed, made.expected()
    with _FunctionRecorder() as recorder:
        actual = way.call(operator, grads, packed)
    _same(actual, expected, str(way))
    assert recorder.seen == [operator.overload]


@pytest.mark.parametrize("way", _SEEN, ids=str)
def test_a_profiler_sees_the_operators(way: Way) -> None:
    all_made = [case.make() for case in NODE_SET]
    calls = [(made.operator, made.grads, made.packed, made.expected()) for made in all_made]
    with torch.autograd.profiler.profile() as profile:
        results = [way.call(operator, grads, packed) for operator, grads, packed, _ in calls]
    for actual, (operator, _, _, expected) in zip(results, calls, strict=True):
        _same(actual, expected, operator.name)
    names = [event.name for event in profile.function_events]
    assert [name for name in names if name.startswith("backbind::")] == [
        f"backbind::{case.node}" for case in NODE_SET
    ]
