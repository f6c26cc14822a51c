"""An operator computes the same whatever surrounds the call, and leaves its surroundings as they were.

A node struct looks around: at the backward that runs, at saved_tensors_hooks, at the modes of the thread. Every
surrounding here is one in which such a look would change the result, a hook would fire, or something would be left
changed. test_surroundings.py combines them, and adds inference tensors and autocast.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits, run_node, tensors_of
from tests.ops.ways import WAYS, Way

Results = list[Tensor | None]
Call = Callable[[], Results]


def in_hook_of_grad(call: Call) -> Results:
    """From a tensor hook while a backward runs that wants other things than this call does."""
    return _in_hook(call, lambda output, x: torch.autograd.grad(output, [x]))


def in_hook_of_grad_through_functions(call: Call) -> Results:
    return _in_hook(call, lambda output, x: torch.autograd.grad(output.exp(), [x], create_graph=True))


def in_hook_of_backward_with_inputs(call: Call) -> Results:
    return _in_hook(call, lambda output, x: output.backward(inputs=[x]))


def in_hook_of_backward(call: Call) -> Results:
    return _in_hook(call, lambda output, x: output.backward())


def _in_hook(call: Call, run: Callable[[Tensor, Tensor], Any]) -> Results:
    results: list[Results] = []
    x = torch.ones(2, requires_grad=True)
    unwanted = torch.ones(2, requires_grad=True)
    with torch.enable_grad():
        middle = x * 2 + unwanted
        output = (middle * 3).sum()
    # Hooks run without grad mode; the call itself is compared in the grad mode of the test.
    middle.register_hook(lambda grad: results.append(_with_grad_mode(call)))
    run(output, x)
    assert len(results) == 1
    return results[0]


def _with_grad_mode(call: Call) -> Results:
    with torch.enable_grad():
        return call()


def in_node_prehook(call: Call) -> Results:
    results: list[Results] = []
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: results.append(_with_grad_mode(call)))
    torch.autograd.grad(y.sum(), x)
    return results[0]


def in_post_accumulate_grad_hook(call: Call) -> Results:
    results: list[Results] = []
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda _: results.append(_with_grad_mode(call)))
    x.exp().sum().backward(inputs=[x])
    return results[0]


def in_final_callback(call: Call) -> Results:
    results: list[Results] = []
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    callback = lambda: results.append(_with_grad_mode(call))  # noqa: E731
    y.register_hook(lambda grad: torch.autograd.Variable._execution_engine.queue_callback(callback))
    torch.autograd.grad(y.sum(), x)
    return results[0]


def in_custom_function(call: Call) -> Results:
    results: list[Results] = []

    class Calls(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            results.append(_with_grad_mode(call))
            return grad

    x = torch.ones(2, requires_grad=True)
    applied: Tensor = Calls.apply(x * 2)  # type: ignore[no-untyped-call]
    torch.autograd.grad(applied.sum(), x)
    return results[0]


def in_reentrant_backward(call: Call) -> Results:
    return in_hook_of_grad(lambda: in_hook_of_backward(call))


def under_saved_tensors_hooks(call: Call) -> Results:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 0, lambda tensor: tensor + 7):
        return call()


def under_hooks_that_refuse(call: Call) -> Results:
    def refuse(value: object) -> Tensor:
        raise AssertionError("saved tensor hooks must not see what an operator is called with")

    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(refuse, refuse):
        return call()


def under_save_on_cpu(call: Call) -> Results:
    with torch.autograd.graph.save_on_cpu():
        return call()


def with_saved_tensors_hooks_disabled(call: Call) -> Results:
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        return call()


def in_no_grad(call: Call) -> Results:
    with torch.no_grad():
        return call()


def in_inference_mode(call: Call) -> Results:
    with torch.inference_mode():
        return call()


def in_anomaly_mode(call: Call) -> Results:
    with torch.autograd.detect_anomaly(check_nan=False):
        return call()


def under_a_torch_function_mode(call: Call) -> Results:
    class Watches(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Watches():
        return call()


def under_a_dispatch_mode(call: Call) -> Results:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watches(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Watches():
        return call()


def under_the_profiler(call: Call) -> Results:
    with torch.autograd.profiler.profile():
        return call()


def with_another_default_dtype(call: Call) -> Results:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        return call()
    finally:
        torch.set_default_dtype(before)


def in_another_thread(call: Call) -> Results:
    results: list[Results] = []
    thread = threading.Thread(target=lambda: results.append(_with_grad_mode(call)))
    thread.start()
    thread.join()
    return results[0]


def in_another_thread_during_a_backward(call: Call) -> Results:
    return in_hook_of_grad(lambda: in_another_thread(call))


SURROUNDINGS: tuple[Callable[[Call], Results], ...] = (
    in_hook_of_grad,
    in_hook_of_grad_through_functions,
    in_hook_of_backward_with_inputs,
    in_hook_of_backward,
    in_node_prehook,
    in_post_accumulate_grad_hook,
    in_final_callback,
    in_custom_function,
    in_reentrant_backward,
    under_saved_tensors_hooks,
    under_hooks_that_refuse,
    under_save_on_cpu,
    with_saved_tensors_hooks_disabled,
    in_no_grad,
    in_inference_mode,
    in_anomaly_mode,
    under_a_torch_function_mode,
    under_a_dispatch_mode,
    under_the_profiler,
    with_another_default_dtype,
    in_another_thread,
    in_another_thread_during_a_backward,
)

# Without a graph of their own to build, some formulas compute otherwise (and round otherwise): eager does the same.
_WITHOUT_GRAD_MODE = (under_hooks_that_refuse, in_no_grad, in_inference_mode)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("surround", SURROUNDINGS, ids=lambda surround: surround.__name__)
def test_surroundings_change_nothing(surround: Callable[[Call], Results], way: Way) -> None:
    """Every node of the set gives the same bits, its arguments stay as they are, and no sequence number is used up."""
    for case in NODE_SET:
        made = case.make()
        call = _call_over_constants(made, way)
        with torch.no_grad() if surround in _WITHOUT_GRAD_MODE else contextlib.nullcontext():
            expected = call()
        assert all_same_bits(surround(call), expected), f"{case} {way} {surround.__name__}"


def _call_over_constants(made: Made, way: Way) -> Call:
    """A call whose tensors need no gradient, so that nothing else in it wants to save tensors."""
    with torch.no_grad():
        grads, packed = made.grads, _detached(made.packed)
    return lambda: way.call(made.operator, grads, packed)


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, list | tuple):
        return type(value)(_detached(one) for one in value)
    return value


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_arguments_stay_as_they_are(case: NodeCase, way: Way) -> None:
    made = case.make()
    grads, packed = made.grads, made.packed
    arguments = [grads, *packed]
    tensors = list(tensors_of(arguments))
    before = [
        (tensor.detach().clone(), tensor._version, tensor.requires_grad, tensor.stride())
        for tensor in tensors
    ]
    structure = repr([_shape_of(one) for one in arguments])
    way.call(made.operator, grads, packed)
    assert repr([_shape_of(one) for one in arguments]) == structure
    for tensor, (bits, version, requires_grad, strides) in zip(tensors, before, strict=True):
        assert all_same_bits([tensor], [bits])
        assert (tensor._version, tensor.requires_grad, tensor.stride()) == (version, requires_grad, strides)
        assert tensor.grad is None


def _shape_of(value: object) -> object:
    if isinstance(value, Tensor):
        return id(value)
    return [_shape_of(one) for one in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_no_sequence_number_is_used_up(case: NodeCase, way: Way) -> None:
    """Sequence numbers order a backward: nodes made before and after a call must follow one another."""
    made = case.make()
    call = _call_over_constants(made, way)
    x = torch.ones(1, requires_grad=True)
    before = x.exp().grad_fn
    with torch.no_grad():
        call()
    after = x.exp().grad_fn
    assert before is not None
    assert after is not None
    assert after._sequence_nr() == before._sequence_nr() + 1


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_saved_tensor_hooks_see_only_what_the_result_saves(case: NodeCase) -> None:
    """With a graph to build, the tensors that the *results* save do pass the hooks, as in an eager double backward."""
    made = case.make()
    grads = [grad if grad is None else grad.clone().requires_grad_() for grad in made.grads]
    packed = made.packed
    with _count_packed() as eager:
        run_node(made.node, grads)
    for way in WAYS:
        with _count_packed() as ours:
            way.call(made.operator, grads, packed)
        assert ours == eager


@contextlib.contextmanager
def _count_packed() -> Iterator[list[torch.Size]]:
    seen: list[torch.Size] = []

    def pack(tensor: Tensor) -> Tensor:
        seen.append(tensor.shape)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield seen
