"""A traced graph holds what the forward saved: it notices changes in place as eager does, unless it has copies."""

from __future__ import annotations

import copy
import io
import pickle
import re
from collections.abc import Callable

import backbind
import pytest
import torch
from backbind import _C
from backbind.trace import TracedBackward
from torch import nn

from tests.graph.gradients import differences, eager_gradients, leaf

ADVICE = (
    "Call the graph before the tensor is changed, trace the next forward anew, or use backbind.trace(..., "
    "copy_saved=True), which keeps a copy of what was saved."
)


def network() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    return made, made(torch.randn(3, 4)).sum()


def message(call: Callable[[], object]) -> str:
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------------------------------------------- changes in place


def a_parameter(value: torch.Tensor, kept: torch.Tensor) -> None:
    value.mul_(2)


def through_a_view(value: torch.Tensor, kept: torch.Tensor) -> None:
    value[1:].zero_()


def through_detach(value: torch.Tensor, kept: torch.Tensor) -> None:
    value.detach().add_(1)


def a_result(value: torch.Tensor, kept: torch.Tensor) -> None:
    kept.add_(1)


@pytest.mark.parametrize(
    "change", [a_parameter, through_a_view, through_detach, a_result], ids=lambda one: one.__name__
)
def test_a_change_is_noticed_where_eager_notices_it(
    change: Callable[[torch.Tensor, torch.Tensor], None],
) -> None:
    value = leaf(3)
    kept = value.exp()
    loss = (kept * value).sum()
    graph = backbind.trace(loss, [value])
    assert differences(graph(), eager_gradients(loss, [value])) == {}
    with torch.no_grad():
        change(value, kept)
    eager = message(lambda: loss.backward(retain_graph=True))
    traced = message(graph)
    versions = r"is at version (\d+); expected version (\d+) instead"
    assert traced.split(": [")[0] == eager.split(": [")[0]
    assert re.findall(versions, traced) == re.findall(versions, eager)


def test_the_error_names_the_node_and_says_what_to_do() -> None:
    made, loss = network()
    graph = backbind.trace(loss, dict(made.named_parameters()))
    with torch.no_grad():
        made[2].weight.mul_(2)  # type: ignore[index]
    buffer = next(name for name, one in graph.named_buffers() if one.shape == (4, 1))
    assert message(graph) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.FloatTensor [4, 1]], which AddmmBackward0 saved (buffer '{buffer}' of this graph), is at version 2; "
        f"expected version 1 instead. {ADVICE}"
    )


def test_a_step_of_an_optimizer_is_noticed() -> None:
    made, loss = network()
    graph = backbind.trace(loss, dict(made.named_parameters()))
    for name, gradient in graph().items():
        made.get_parameter(name).grad = gradient
    torch.optim.SGD(made.parameters(), 0.1).step()
    assert message(graph).startswith("one of the variables needed for gradient computation")


def test_a_change_that_does_not_matter_to_eager_is_none() -> None:
    value, added = leaf(3), leaf(3)
    loss = (value.exp() + added).sum()
    graph = backbind.trace(loss, [value])
    with torch.no_grad():
        added.mul_(2)
        value.data.mul_(2)  # counted by nobody, in eager too
    assert differences(graph(), eager_gradients(loss, [value])) == {}


def test_a_compiled_graph_notices_changes_too() -> None:
    value = leaf(3)
    graph = backbind.trace(value.square().sum(), [value])
    compiled = torch.compile(graph, backend="aot_eager")
    assert torch.equal(compiled()[0], 2 * value)
    with torch.no_grad():
        value.mul_(2)
    assert message(compiled) == message(graph)


# --------------------------------------------------------------------------------------- graphs that own their copies


def deep_copied(graph: TracedBackward) -> TracedBackward:
    return copy.deepcopy(graph)


def pickled(graph: TracedBackward) -> TracedBackward:
    loaded: TracedBackward = pickle.loads(pickle.dumps(graph))
    return loaded


def stored(graph: TracedBackward) -> TracedBackward:
    file = io.BytesIO()
    torch.save(graph, file)
    file.seek(0)
    loaded: TracedBackward = torch.load(file, weights_only=False)
    return loaded


def moved(graph: TracedBackward) -> TracedBackward:
    graph.double()
    graph.float()
    return graph


OWNERS = (deep_copied, pickled, stored, moved)


@pytest.mark.parametrize("own", OWNERS, ids=lambda one: one.__name__)
def test_a_graph_with_buffers_of_its_own_keeps_giving_its_gradients(
    own: Callable[[TracedBackward], TracedBackward],
) -> None:
    made, loss = network()
    inputs = list(made.parameters())
    expected = eager_gradients(loss, inputs)
    owner = own(backbind.trace(loss, inputs))
    with torch.no_grad():
        for parameter in inputs:
            parameter.mul_(2)
    assert isinstance(owner, TracedBackward)
    assert differences(owner(), expected) == {}


@pytest.mark.parametrize("own", OWNERS, ids=lambda one: one.__name__)
def test_no_copy_is_made_of_changed_tensors(own: Callable[[TracedBackward], TracedBackward]) -> None:
    made, loss = network()
    graph = backbind.trace(loss, list(made.parameters()))
    with torch.no_grad():
        made[2].weight.mul_(2)  # type: ignore[index]
    assert message(lambda: own(graph)) == message(graph)


def test_a_shallow_copy_notices_changes() -> None:
    made, loss = network()
    graph = backbind.trace(loss, list(made.parameters()))
    copied = copy.copy(graph)
    assert differences(copied(), graph()) == {}
    with torch.no_grad():
        made[2].weight.mul_(2)  # type: ignore[index]
    assert message(copied) == message(graph)


def test_a_graph_that_is_moved_nowhere_still_notices_changes() -> None:
    made, loss = network()
    graph = backbind.trace(loss, list(made.parameters())).to("cpu")
    with torch.no_grad():
        made[2].weight.mul_(2)  # type: ignore[index]
    assert message(graph).endswith(ADVICE)


@pytest.mark.parametrize("assign", [False, True])
def test_a_loaded_state_is_not_written_into_what_was_saved(assign: bool) -> None:
    model, loss = network()
    graph = backbind.trace(loss, dict(model.named_parameters()))
    expected = graph()
    state = {name: tensor * 2 for name, tensor in graph.state_dict().items()}
    before = [parameter.detach().clone() for parameter in model.parameters()]
    graph.load_state_dict(state, assign=assign)
    assert [
        torch.equal(one, parameter) for one, parameter in zip(before, model.parameters(), strict=True)
    ] == [True] * len(before)
    loaded = graph()
    assert not torch.equal(loaded["0.weight"], expected["0.weight"])
    for tensor in state.values():
        tensor.zero_()
    assert torch.equal(graph()["0.weight"], loaded["0.weight"]) != assign
    loss.backward()
    assert torch.equal(expected["0.weight"], model.get_parameter("0.weight").grad)  # type: ignore[arg-type]


@pytest.mark.parametrize("assign", [False, True])
def test_a_number_of_a_loaded_state_is_marked_in_a_copy(assign: bool) -> None:
    """A number does not decide about the dtype of a result; the user's own tensor goes on to decide."""
    value = leaf(3)
    graph = backbind.trace((value * 0.5).sum(), [value])
    (name,) = (name for name, buffer in graph.named_buffers() if _C.is_wrapped_number(buffer))
    given = torch.tensor(2.0, dtype=torch.float64)
    graph.load_state_dict({**graph.state_dict(), name: given}, assign=assign)
    assert (torch.ones(1, dtype=torch.float16) * given[None]).dtype == torch.float64
    assert not _C.is_wrapped_number(given)
    (gradient,) = graph()
    assert differences([gradient], [torch.full((3,), 2.0)]) == {}


def test_a_state_of_other_sizes_is_refused() -> None:
    model, loss = network()
    graph = backbind.trace(loss, dict(model.named_parameters()))
    expected = graph()
    with pytest.raises(RuntimeError, match="size mismatch"):
        graph.load_state_dict({name: torch.ones(99) for name in graph.state_dict()})
    assert differences(list(graph().values()), list(expected.values())) == {}


def test_what_is_not_loaded_is_checked() -> None:
    model, loss = network()
    graph = backbind.trace(loss, dict(model.named_parameters()))
    state = graph.state_dict()
    with torch.no_grad():
        model.get_parameter("2.weight").add_(1)
    assert "has been modified by an inplace operation" in message(
        lambda: graph.load_state_dict({}, strict=False)
    )
    graph.load_state_dict(state)
    graph()


def test_a_buffer_that_a_user_replaced_is_the_users() -> None:
    value = leaf(3)
    graph = backbind.trace(value.square().sum(), [value])
    state = {name: one.clone() for name, one in graph.state_dict().items()}
    expected = graph()
    with torch.no_grad():
        value.mul_(2)
    graph.load_state_dict(state, assign=True)
    assert differences(graph(), expected) == {}


# --------------------------------------------------------------------------------------------------------- copy_saved


def contiguous(value: torch.Tensor) -> torch.Tensor:
    return value


def transposed(value: torch.Tensor) -> torch.Tensor:
    return value.t()


def with_gaps(value: torch.Tensor) -> torch.Tensor:
    return value[:, 1::2]


def expanded(value: torch.Tensor) -> torch.Tensor:
    return value[:, :1].expand(4, 4)


def overlapping(value: torch.Tensor) -> torch.Tensor:
    return value.flatten().unfold(0, 4, 2)[:4]


def conjugated(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value, value).conj()


def negated(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value, value).conj().imag


def empty(value: torch.Tensor) -> torch.Tensor:
    return value[:0]


def sparse(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse()


@pytest.mark.parametrize(
    "view",
    [contiguous, transposed, with_gaps, expanded, overlapping, conjugated, negated, empty, sparse],
    ids=lambda one: one.__name__,
)
def test_copies_have_the_strides_and_flags_of_what_was_saved(
    view: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    base = leaf(4, 4).detach()
    factor, value = view(base), leaf(4, 4)
    saved = value[: factor.shape[0], : factor.shape[1]]
    product = saved * factor
    loss = (product.to_dense() if product.is_sparse else product).abs().sum()
    expected = eager_gradients(loss, [value])
    graph = backbind.trace(loss, [value], copy_saved=True)
    shapes = [(one.layout, one.is_conj(), one.is_neg()) for one in graph.buffers()]
    assert (factor.layout, factor.is_conj(), factor.is_neg()) in shapes
    if not factor.is_sparse:
        assert factor.stride() in [one.stride() for one in graph.buffers() if not one.is_sparse]
    base.zero_()
    assert differences(graph(), expected) == {}


def test_a_tensor_that_is_saved_as_a_result_and_as_an_input_is_copied_once() -> None:
    value = leaf(3)
    inner = value.exp()  # saves its result
    loss = (inner * leaf(3)).sum()
    graph = backbind.trace(loss, backbind.leaves(loss), copy_saved=True)
    copies = {one.untyped_storage().data_ptr() for one in graph.buffers() if torch.equal(one, inner)}
    assert len(copies) == 1
    assert inner.untyped_storage().data_ptr() not in copies


# ------------------------------------------------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    "number", [0.3, 7, True, 1e300, float("inf"), float("nan"), 0.3 - 0.7j, complex("inf")]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
def test_a_number_stays_one_in_every_copy(number: complex, dtype: torch.dtype) -> None:
    """A tensor of no dimensions would decide about the dtype in which the gradient is computed."""
    value = torch.tensor(0.7, dtype=dtype, requires_grad=True)
    output = value * 0.1 * number + value / 0.9
    given = torch.tensor(0.3, dtype=output.dtype)
    expected = torch.autograd.grad(output, [value], given, retain_graph=True)
    graph = backbind.trace(output, [value])
    copied = backbind.trace(output, [value], copy_saved=True)
    for one in (graph, copied, deep_copied(graph), pickled(graph), stored(graph)):
        assert differences(one(given), expected) == {}


@pytest.mark.parametrize("alpha", [complex("inf"), complex(0.5, float("nan")), 2j, float("inf"), -0.0, -0j])
def test_numbers_are_constants_of_the_code(alpha: complex) -> None:
    value, other = leaf(3, dtype=torch.complex64), leaf(3, dtype=torch.complex64)
    output = torch.add(value, other, alpha=alpha)
    given = leaf(3, dtype=torch.complex64).detach()
    expected = torch.autograd.grad(output, [value, other], given, retain_graph=True)
    graph = backbind.trace(output, [value, other])
    for one in (graph, deep_copied(graph)):
        assert differences(one(given), expected) == {}
