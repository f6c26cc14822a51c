"""Saved values that were released or written over: pack raises what running the backward raises, word for word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import backbind
import pytest
import torch
from torch import Tensor

from tests.ops.node_set import NODE_SET, Made, NodeCase, tensors_of
from tests.oracle.compare import difference
from tests.oracle.outcome import outcome_of

Error = tuple[type[BaseException], str]


def _error_of(call: Callable[[], object]) -> Error | None:
    try:
        call()
    except RuntimeError as error:
        return type(error), str(error)
    return None


def _run_backward(made: Made, *, retain_graph: bool = True) -> None:
    torch.autograd.grad(
        made.outputs, made.inputs, made.output_grads, retain_graph=retain_graph, allow_unused=True
    )


def _saved_tensors(made: Made) -> list[Tensor]:
    return list(tensors_of(made.packed))


def _keeps_values(case: NodeCase) -> bool:
    saved = case.make().operator.saved
    return bool(_saved_tensors(case.make())) or any(one.schema_type == "Scalar[]" for one in saved)


_KEEPING = tuple(case for case in NODE_SET if _keeps_values(case))
_FORGETTING = tuple(case for case in NODE_SET if not _keeps_values(case))


@pytest.mark.parametrize("case", _KEEPING, ids=str)
def test_released(case: NodeCase) -> None:
    made = case.make()
    _run_backward(made, retain_graph=False)
    # torch forgets to look whether a list of numbers was released, and reads what is no longer there; pack refuses.
    of_numbers = not _saved_tensors(case.make())
    expected = _error_of(lambda: _run_backward(_released_product() if of_numbers else made))
    assert expected is not None
    assert expected[1].startswith("Trying to backward through the graph a second time")
    for _ in range(2):
        assert _error_of(lambda: backbind.pack(made.node)) == expected


def _released_product() -> Made:
    made = next(case for case in NODE_SET if case.node == "MulBackward0").make()
    _run_backward(made, retain_graph=False)
    return made


@pytest.mark.parametrize("case", _FORGETTING, ids=str)
def test_nothing_to_release(case: NodeCase) -> None:
    made = case.make()
    before, expected = made.packed, made.expected()
    _run_backward(made, retain_graph=False)
    assert made.packed == before
    assert difference(outcome_of(lambda: expected), outcome_of(made.call)) == ""


_CHANGES: dict[str, Callable[[Tensor], object]] = {
    "by copy": lambda tensor: tensor.copy_(tensor.clone()),
    "by fill": lambda tensor: tensor.zero_(),
    "through a view": lambda tensor: tensor[...].copy_(tensor.clone()),
    "through a detached view": lambda tensor: tensor.detach().zero_(),
}


def _changed(case: NodeCase, change: Callable[[Tensor], object]) -> Iterator[tuple[Made, Tensor]]:
    """The node of a case with one of its saved tensors written over, for each of them."""
    for position in range(len(_saved_tensors(case.make()))):
        made = case.make()
        tensor = _saved_tensors(made)[position]
        if tensor.numel() and torch._debug_has_internal_overlap(tensor) == 0:
            with torch.no_grad():
                change(tensor)
            yield made, tensor


@pytest.mark.parametrize("anomaly", [False, True], ids=["plain", "anomaly mode"])
@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize("case", [case for case in _KEEPING if _saved_tensors(case.make())], ids=str)
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_changed_in_place(case: NodeCase, change: str, anomaly: bool) -> None:
    refused = 0
    with torch.autograd.set_detect_anomaly(anomaly):
        for made, tensor in _changed(case, _CHANGES[change]):
            expected = _error_of(lambda: _run_backward(made))  # noqa: B023
            assert expected is not None
            assert "has been modified by an inplace operation" in expected[1]
            assert str(list(tensor.shape)) in expected[1]
            assert _error_of(lambda: backbind.pack(made.node)) == expected  # noqa: B023
            refused += 1
    assert refused


@pytest.mark.parametrize("release", [False, True], ids=["changed", "released"])
def test_indices(release: bool) -> None:
    rows, columns = torch.tensor([0, 2]), torch.tensor([1, 0])
    out = torch.ones(3, 3, requires_grad=True)[rows, columns].sum(0)
    assert out.grad_fn is not None
    indexing = out.grad_fn.next_functions[0][0]
    if release:
        out.backward()
    else:
        columns.add_(1)
    expected = _error_of(out.backward)
    assert expected is not None
    assert _error_of(lambda: backbind.pack(indexing)) == expected


def test_unpack_hooks_run_once_for_each_pack() -> None:
    """Reading a live node is what the engine does, so hooks that its forward put there run."""
    seen: list[Tensor] = []

    def unpack(tensor: Tensor) -> Tensor:
        seen.append(tensor)
        return tensor * 2

    leaf = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach().clone(), unpack):
        out = leaf * torch.full((2,), 3.0)
    _, other, _, own, _ = backbind.pack(out.grad_fn)
    assert isinstance(other, Tensor)
    assert other.tolist() == [6.0, 6.0]
    assert own is None  # nothing needs it
    assert len(seen) == 1


@pytest.mark.parametrize("error", [ValueError("not now"), KeyboardInterrupt("stop")], ids=repr)
def test_errors_of_unpack_hooks_arrive_as_they_are(error: BaseException) -> None:
    def unpack(_: Tensor) -> Tensor:
        raise error

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        out = torch.ones(2, requires_grad=True) * torch.ones(2)
    with pytest.raises(type(error)) as caught:
        backbind.pack(out.grad_fn)
    assert caught.value is error


def test_packing_does_not_release() -> None:
    made = NODE_SET[0].make()
    first, second = backbind.pack(made.node), backbind.pack(made.node)
    assert [one for one in first if not isinstance(one, Tensor)] == [
        one for one in second if not isinstance(one, Tensor)
    ]
    made.outputs[0].sum().backward()


def test_pack_refuses_what_has_no_operator() -> None:
    x = torch.ones(1, requires_grad=True)
    (accumulate, _), *_ = (x * 2).grad_fn.next_functions  # type: ignore[union-attr]
    for function in (backbind.pack, backbind.ops.for_node):
        with pytest.raises(LookupError) as caught:
            function(accumulate)
        assert str(caught.value) == (
            "node 'torch::autograd::AccumulateGrad' has no functional operator: it was not made by an entry of "
            "derivatives.yaml; backbind.ops lists the nodes that have one"
        )
        with pytest.raises(TypeError) as wrong:
            function(x)
        assert str(wrong.value) == "expected an autograd node (as in tensor.grad_fn), got Tensor"
        with pytest.raises(TypeError) as missing:
            function(None)
        assert str(missing.value) == "expected an autograd node (as in tensor.grad_fn), got NoneType"
