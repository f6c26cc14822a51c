"""The private behaviour of torch that csrc/torch_private.h and delegates rest on, one test for each piece.

Where a new torch breaks one of these, the message names what changed, and the function of ours to look at.
"""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import backbind
import pytest
import torch
from backbind import _C
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from codegen.torch_install.locate import TorchInstall
from tests.conftest import REPOSITORY

_HEADER = REPOSITORY / "csrc" / "torch_private.h"
_TESTED = {
    "as_ordinary_tensor",
    "wanted_by_running_backward",
    "SavedTensorHooksPaused",
    "skips_graph_root",
    "run_in_engine",
    "root_gradients",
    "erase_skipped_graph_root",
    "release_dependencies",
    "make_graph_root",
    "note_graph",
    "saved_tensor",
    "is_result",
    "has_python_object",
    "kernel_in_table",
    "is_kernel_of_torch",
    "NodeLock",
    "find_current_node",
    "CurrentNodeGuard",
    "call_python_dispatcher",
}


def test_every_function_of_the_header_has_a_test() -> None:
    code = re.sub(r"//.*", "", _HEADER.read_text())
    functions = set(re.findall(r"^(?:const )?[\w:<>]+[*&]? (\w+)\([^;{]*\);", code, re.MULTILINE))
    classes = set(re.findall(r"^class (\w+)", code, re.MULTILINE))
    assert functions | classes == _TESTED, f"{_HEADER.name} and the tests of this file must be kept together"


def _delegate_of_product(other: Tensor) -> Tensor:
    """The gradient of ``self * other`` with a graph, made by a node struct that saved ``other``."""
    grad = torch.ones(other.shape, requires_grad=True)
    gradient, _ = backbind.ops.MulBackward0.delegate(
        [grad], [True, False], other, other.dtype, None, other.dtype
    )
    assert gradient is not None
    return gradient


# is_result


def test_inputs_are_told_from_results() -> None:
    value = torch.rand(3, requires_grad=True).clone()
    result = value.exp()
    assert backbind.pack(result.grad_fn)[1].requires_grad, "a result is unpacked without its node (is_result)"  # type: ignore[attr-defined]
    other = value.sin()
    value.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        backbind.pack(other.grad_fn)


# wanted_by_running_backward


def test_an_inner_node_that_was_freed_is_not_asked_for() -> None:
    """A CopySlices notes its inner node down among those that the backward wants, and frees it."""
    base = torch.rand(2, 4, requires_grad=True)
    other = torch.rand(2, 4, requires_grad=True)
    changed = base.clone()
    changed[0].mul_(2)
    for _ in range(20):
        put = other.clone()
        put[:, torch.tensor([0, 2])] = changed[:, 1:3]
        with backbind.capture(backend="graph"):
            gradients = torch.autograd.grad(put.sum(), [base, other], retain_graph=True)
        expected = torch.autograd.grad(put.sum(), [base, other], retain_graph=True)
        assert all(map(torch.equal, gradients, expected))


# as_ordinary_tensor


def test_keys_decide_whether_a_tensor_is_an_inference_tensor() -> None:
    with torch.inference_mode():
        inference = torch.ones(3)
    kept = next(
        one for one in backbind.pack(_delegate_of_product(inference).grad_fn) if isinstance(one, Tensor)
    )
    assert not kept.is_inference(), (
        "adding autograd's keys to TensorImpl::key_set_ no longer makes an inference tensor an ordinary one "
        "(as_ordinary_tensor)"
    )
    assert torch._C._dispatch_keys(kept) == torch._C._dispatch_keys(torch.ones(3)), (
        "ordinary tensors have other dispatch keys than getAutogradRelatedKeySetFromBackend and ADInplaceOrView give "
        "(as_ordinary_tensor)"
    )
    assert kept.untyped_storage()._cdata == inference.untyped_storage()._cdata, (
        "TensorImpl::shallow_copy_and_detach no longer shares the storage (as_ordinary_tensor)"
    )
    assert inference.is_inference(), "the user's own tensor was changed (as_ordinary_tensor)"


@pytest.mark.parametrize("in_inference_mode", [False, True], ids=["outside", "in inference mode"])
def test_an_ordinary_copy_counts_versions(in_inference_mode: bool) -> None:
    with torch.inference_mode():
        inference = torch.full((3,), 2.0)
    with torch.inference_mode(in_inference_mode):
        try:
            gradient = _delegate_of_product(inference)
        except RuntimeError as error:
            pytest.fail(
                f"a TensorImpl made by shallow_copy_and_detach has no version counter, and setting one does not help "
                f"(as_ordinary_tensor): {error}"
            )
    assert gradient.tolist() == [2.0, 2.0, 2.0]


def test_torch_still_refuses_to_save_inference_tensors() -> None:
    with torch.inference_mode():
        inference = torch.ones(3)
    with pytest.raises(RuntimeError) as caught:
        torch.ones(3, requires_grad=True) * inference
    assert "Inference tensors cannot be saved for backward" in str(caught.value), (
        "torch has another reason to refuse inference tensors, or as_ordinary_tensor is no longer needed"
    )


# wanted_by_running_backward


def _in_hook_of(differentiate: Callable[[Tensor, Tensor], object], call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    leaf = torch.ones(2, requires_grad=True)
    between = leaf * 2
    between.register_hook(lambda _: results.append(call()))
    differentiate(between.sum(), leaf)
    return results[0]


_PARTIAL: dict[str, Callable[[Tensor, Tensor], object]] = {
    "grad": lambda loss, leaf: torch.autograd.grad(loss, leaf),
    "backward with inputs": lambda loss, leaf: loss.backward(inputs=[leaf]),
}


@pytest.mark.parametrize("way", _PARTIAL)
def test_the_running_backward_decides_which_gradients_a_node_computes(way: str) -> None:
    leaf = torch.ones(2, requires_grad=True)
    node = (leaf * 3).grad_fn
    assert node is not None
    assert _in_hook_of(_PARTIAL[way], lambda: node(torch.ones(2))) == (None, None), (  # type: ignore[operator]
        "a generated node no longer asks the running graph task's exec_info what to compute "
        "(wanted_by_running_backward may no longer be needed)"
    )


@pytest.mark.parametrize("way", _PARTIAL)
def test_an_edge_to_a_wanted_node_is_wanted(way: str) -> None:
    def call() -> list[Tensor | None]:
        other = torch.full((2,), 3.0)
        return backbind.ops.MulBackward0.delegate(
            [torch.ones(2)], [True, False], other, other.dtype, None, other.dtype
        )

    first, second = _in_hook_of(_PARTIAL[way], call)
    assert first is not None, (
        "an edge to a node that exec_info says should_execute() about no longer makes a generated node compute that "
        "gradient (wanted_by_running_backward)"
    )
    assert first.tolist() == [3.0, 3.0]
    assert second is None, "a gradient without an edge was computed (DelegateEdges)"


def test_a_backward_of_everything_has_no_exec_info() -> None:
    leaf = torch.ones(2, requires_grad=True)
    node = (leaf * 3).grad_fn
    assert node is not None
    first, second = _in_hook_of(lambda loss, _: loss.backward(), lambda: node(torch.ones(2)))  # type: ignore[operator]
    assert (first.tolist(), second) == ([3.0, 3.0], None), (
        "a backward without inputs= now restricts which nodes compute (wanted_by_running_backward)"
    )


# SavedTensorHooksPaused


def test_the_tracing_flag_keeps_hooks_from_firing() -> None:
    fired: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        fired.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        before = torch._C._autograd._saved_tensors_hooks_set_tracing(True)
        try:
            torch.ones(2, requires_grad=True).exp()
            assert fired == [], (
                "SavedTensorDefaultHooks::set_tracing(true) no longer keeps hooks from firing (SavedTensorHooksPaused)"
            )
        finally:
            torch._C._autograd._saved_tensors_hooks_set_tracing(before)
        assert before is False, "SavedTensorDefaultHooks::set_tracing no longer gives the flag as it was"
        torch.ones(2, requires_grad=True).exp()
        assert len(fired) == 1, (
            "hooks stay off behind SavedTensorDefaultHooks::set_tracing (SavedTensorHooksPaused)"
        )


@pytest.mark.parametrize("tracing", [False, True])
def test_delegates_put_the_flag_back(tracing: bool) -> None:
    before = torch._C._autograd._saved_tensors_hooks_set_tracing(tracing)
    try:
        _delegate_of_product(torch.ones(2))
        left = torch._C._autograd._saved_tensors_hooks_set_tracing(tracing)
    finally:
        torch._C._autograd._saved_tensors_hooks_set_tracing(before)
    assert left is tracing, "filling a delegate changed the flag that defers hooks (SavedTensorHooksPaused)"


# skips_graph_root, run_in_engine, root_gradients


def _after_taking_the_entry() -> None:
    """From here on the engine hands backwards over, those of threads that capture nothing too."""
    with backbind.capture():
        pass


@pytest.mark.parametrize("count", [1, 2])
def test_a_backward_that_was_handed_over_goes_on_in_the_engine(count: int) -> None:
    _after_taking_the_entry()
    leaf = torch.full((2,), 3.0, requires_grad=True)
    torch.autograd.backward([leaf.square() for _ in range(count)], [torch.ones(2)] * count)
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [6.0 * count] * 2, (
        "Engine::execute_with_graph_task no longer runs a backward from the task and the root that the engine's entry "
        "is given, or a GraphRoot holds its gradients elsewhere (run_in_engine, root_gradients)"
    )


def test_a_lone_root_has_no_node_before_it() -> None:
    _after_taking_the_entry()
    leaf = torch.ones(2, requires_grad=True)
    loss = leaf.sin().sum()
    seen: list[bool] = []
    leaf.register_hook(lambda _: seen.append(torch._C._will_engine_execute_node(loss.grad_fn)))  # type: ignore[arg-type]
    for surround in (contextlib.nullcontext, backbind.capture):
        with surround():
            loss.backward(retain_graph=True)
    assert seen == [False, False], (
        "GraphTask::nodes_in_graph_ no longer tells whether the engine came to a node from another (skips_graph_root)"
    )


@pytest.mark.parametrize("surround", [contextlib.nullcontext, backbind.capture])
def test_the_order_of_nodes_is_told_until_the_first_has_run(
    surround: Callable[[], contextlib.AbstractContextManager[object]],
) -> None:
    leaf = torch.ones(2, requires_grad=True)
    middle = leaf.sin()
    loss = middle.sum()
    private: Any = torch._C
    lengths: list[int] = []
    loss.register_hook(lambda _: lengths.append(len(private._current_graph_task_execution_order())))
    middle.register_hook(lambda _: lengths.append(len(private._current_graph_task_execution_order())))
    with (
        surround(),
        torch.autograd.set_multithreading_enabled(False),
        pytest.raises(RuntimeError, match=r"it != dependencies\.end\(\)"),
    ):
        loss.backward()
    assert lengths == [3], (
        "the engine no longer takes nodes out of GraphTask::dependencies_ as they run (release_dependencies)"
    )


def test_the_graph_is_noted_as_the_engine_notes_it() -> None:
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    middle = leaf.sin()
    nodes = [middle.grad_fn, other.cos().grad_fn]
    seen: list[list[bool]] = []
    middle.register_hook(lambda _: seen.append([torch._C._will_engine_execute_node(one) for one in nodes]))  # type: ignore[arg-type]
    for surround in (contextlib.nullcontext, backbind.capture):
        with surround():
            torch.autograd.backward((middle.sum(), middle.exp().sum()), retain_graph=True)
    assert seen == [[True, False]] * 2, (
        "what a backward notes down of its graph is no longer in GraphTask::nodes_in_graph_, or not all nodes that its "
        "roots lead to (note_graph, make_graph_root)"
    )


def test_warnings_of_a_backward_that_was_handed_over_arrive() -> None:
    _after_taking_the_entry()
    leaf = torch.ones(2, 3, requires_grad=True)
    leaf.grad = torch.zeros(3, 2).t()  # another memory layout than that of its leaf, of which torch warns
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            leaf.sum().backward()
    finally:
        torch.set_warn_always(always)
    assert [str(one.message).partition(".")[0] for one in caught] == [
        "grad and param do not obey the gradient layout contract"
    ], "DelayWarningHandler::warnings_ no longer holds what a backward warns of until its end (run_in_engine)"


# saved_tensor, NodeLock


def test_a_saved_tensor_with_hooks_is_read_through_them() -> None:
    leaf = torch.zeros(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor * 5):
        loss = leaf.exp().sum()
    with backbind.capture():
        loss.backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [5.0, 5.0], (
        "SavedVariable::has_hooks no longer tells that a saved tensor has hooks (saved_tensor)"
    )


@pytest.mark.parametrize("spoil", ["changed in place", "freed"])
def test_a_saved_tensor_that_is_no_longer_what_it_was_is_not_just_read(spoil: str) -> None:
    leaf = torch.zeros(2, requires_grad=True)
    middle = leaf * 2
    loss = middle.square().sum()
    with backbind.capture():
        if spoil == "freed":
            loss.backward()
        else:
            with torch.no_grad():
                middle.mul_(3)
        with pytest.raises(RuntimeError) as error:
            loss.backward()
    expected = {
        "freed": "Trying to backward through the graph a second time",
        "changed in place": "one of the variables needed for gradient computation has been modified by an inplace",
    }[spoil]
    assert str(error.value).startswith(expected), (
        "SavedVariable::data_ or saved_version_ no longer tells that a saved tensor was freed or changed "
        "(saved_tensor)"
    )


def test_an_undefined_saved_tensor_stays_one() -> None:
    data = torch.randn(2, 3, requires_grad=True)
    norm = torch.nn.LayerNorm(3, elementwise_affine=False)
    norm(data).square().sum().backward()
    expected = data.grad
    data.grad = None
    with backbind.capture():
        norm(data).square().sum().backward()
    actual: Tensor | None = data.grad
    assert expected is not None
    assert actual is not None
    assert torch.equal(expected, actual), (
        "SavedVariable::was_default_constructed_ no longer tells that nothing was saved (saved_tensor)"
    )


# kernel_in_table, is_kernel_of_torch


def _slow_path_of_tanh() -> dict[str, Mapping[str, int]]:
    with backbind.capture() as session:
        torch.ones(2, requires_grad=True).tanh().sum().backward()
    return dict(session.stats.slow_path_reasons)


@pytest.mark.parametrize("key", ["AutogradCPU", "ADInplaceOrView"])
def test_the_dispatchers_table_tells_whose_kernel_is_called(key: str) -> None:
    assert _slow_path_of_tanh() == {}, (
        "OperatorHandle::debug and SafeKernelFunction::debug no longer tell by their source files that a kernel is "
        "torch's own (is_kernel_of_torch)"
    )
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("tanh_backward", lambda grad, result: grad, key)
    try:
        assert _slow_path_of_tanh() != {}, (
            "a kernel that is registered no longer takes its place in OperatorEntry::dispatchTable_ (kernel_in_table)"
        )
    finally:
        library._destroy()
    assert _slow_path_of_tanh() == {}, (
        "a kernel that is taken back stays in OperatorEntry::dispatchTable_ (kernel_in_table)"
    )


@pytest.mark.parametrize("key", ["AutogradCPU", "ADInplaceOrView"])
def test_nobody_else_can_bring_a_fallback(key: str) -> None:
    library = torch.library.Library("_", "IMPL")
    with pytest.raises(RuntimeError) as error:
        library.fallback(lambda operator, *arguments: None, key)
    assert str(error.value).startswith(
        f"Tried to register multiple backend fallbacks for the same dispatch key {key}; previous registration"
    ), "torch lets a program replace its fallback kernels, which operators without kernels of their own call"


def test_a_node_that_runs_holds_its_mutex(installed_torch: TorchInstall) -> None:
    node_header = installed_torch.include / "torch" / "csrc" / "autograd" / "node.h"
    protected = node_header.read_text().partition(" protected:")[2]
    assert "  std::mutex mutex_;" in protected, "Node has no protected member mutex_ any more (NodeLock)"


# find_current_node, CurrentNodeGuard


@pytest.mark.parametrize("in_thread", [False, True], ids=["this thread", "another thread"])
def test_the_current_node_can_be_set(in_thread: bool) -> None:
    seen: list[object] = []

    def run() -> None:
        y = torch.ones(2, requires_grad=True).exp()
        y.register_hook(lambda _: seen.append(torch._C._current_autograd_node() is y.grad_fn))
        with backbind.capture():
            y.sum().backward()
        seen.append(torch._C._current_autograd_node())

    if in_thread:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    else:
        run()
    assert seen == [True, None], (
        "the variable behind torch::autograd::get_current_node is no thread-local pointer in the library of that "
        "function any more, or is not restored (find_current_node, CurrentNodeGuard)"
    )


# Delegates themselves (csrc/nodes/delegate.h)


def test_node_structs_take_a_sequence_number(installed_torch: TorchInstall) -> None:
    node_header = installed_torch.include / "torch" / "csrc" / "autograd" / "node.h"
    assert (
        "explicit Node(uint64_t sequence_nr, edge_list&& next_edges = edge_list())" in node_header.read_text()
    ), "Node has no constructor that takes a sequence number any more (make_delegate, Sink)"
    structs = re.findall(
        r"^struct TORCH_API \w+ : public (Node|TraceableFunction) \{\n#endif\n  using (\w+)::\2;",
        installed_torch.functions_header.read_text(),
        re.MULTILINE,
    )
    operators = len(_C.make_operators())
    assert len(structs) == operators, (
        f"only {len(structs)} of {operators} node structs inherit the constructors of their base "
        "(make_delegate)"
    )
    assert all(base == inherited for base, inherited in structs)


def test_delegates_take_no_sequence_number() -> None:
    counter = torch.ones(1, requires_grad=True)
    before = counter.exp().grad_fn
    with torch.no_grad():
        backbind.ops.TanhBackward0.delegate([torch.ones(1)], [True], torch.ones(1))
    after = counter.exp().grad_fn
    assert before is not None
    assert after is not None
    assert after._sequence_nr() == before._sequence_nr() + 1, (
        "a node that is given its sequence number takes one from the thread's counter all the same (make_delegate)"
    )


def test_apply_can_be_called_from_outside_of_a_backward() -> None:
    (gradient,) = backbind.ops.TanhBackward0.delegate([torch.ones(2)], [True], torch.full((2,), 0.5))
    assert gradient is not None
    assert gradient.tolist() == [0.75, 0.75], "a generated node's apply is no longer a function of its fields"


# call_python_dispatcher


def test_the_dispatcher_in_python_takes_a_call_before_dispatch() -> None:
    def product(grad: Tensor, other: Tensor) -> list[Tensor]:
        gradients: list[Tensor] = torch.ops.backbind.MulBackward0(
            [grad], [True, True], other, other.dtype, other, other.dtype
        )
        return gradients

    graph = make_fx(product, pre_dispatch=True)(torch.ones(2), torch.ones(2)).graph
    called = [node.target for node in graph.nodes if node.op == "call_function"]
    assert torch.ops.backbind.MulBackward0.default in called, (
        "PyInterpreter::python_dispatcher no longer calls the mode that traces before dispatch "
        "(call_python_dispatcher)"
    )
