"""What trace and its graph take: outputs, inputs and gradients, and what they say of others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import backbind
import pytest
import torch

from tests.graph.gradients import assert_traces, differences, leaf


def raised(call: Callable[[], object]) -> tuple[type[Exception], str]:
    """The exception of a call, without what follows the text of torch's errors."""
    with pytest.raises(Exception) as caught:
        call()
    return caught.type, str(caught.value)


# ------------------------------------------------------------------------------------------------ outputs and inputs


@pytest.mark.parametrize(
    ("outputs", "error", "message"),
    [
        (3, TypeError, "outputs must be a tensor or a list or tuple of tensors, got int"),
        ("ab", TypeError, "outputs must be a tensor or a list or tuple of tensors, got str"),
        ({"a": leaf(1)}, TypeError, "outputs must be a tensor or a list or tuple of tensors, got dict"),
        ([3], TypeError, "outputs must be tensors, element 0 is a int"),
        ([], RuntimeError, "outputs is empty: there is nothing to differentiate"),
        (
            torch.ones(1),
            RuntimeError,
            "element 0 of outputs does not require grad and does not have a grad_fn",
        ),
        (
            [leaf(2).sum(), leaf(2).sum().int()],
            RuntimeError,
            "element 1 of outputs does not require grad and does not have a grad_fn",
        ),
    ],
)
def test_outputs_that_have_no_gradients(outputs: Any, error: type[Exception], message: str) -> None:
    assert raised(lambda: backbind.trace(outputs)) == (error, message)


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        (3, TypeError, "inputs must be a tensor or a list or tuple of tensors, got int"),
        ({"a": 3}, TypeError, "inputs must be tensors, element 0 is a int"),
        ([], RuntimeError, "inputs is empty: there is nothing to differentiate"),
        (
            [torch.ones(1)],
            RuntimeError,
            "element 0 of inputs does not require grad and does not have a grad_fn",
        ),
    ],
)
def test_inputs_that_have_no_gradients(inputs: Any, error: type[Exception], message: str) -> None:
    assert raised(lambda: backbind.trace(leaf(2).sum(), inputs)) == (error, message)


def test_an_input_that_is_not_used_is_refused_as_eager_does() -> None:
    used, unused = leaf(3), leaf(3)
    loss = used.sum()
    choices: tuple[Any, ...] = ([unused], [used, unused], {"used": used, "unused": unused})
    for inputs in choices:
        eager = raised(partial(torch.autograd.grad, loss, inputs, retain_graph=True))
        assert raised(partial(backbind.trace, loss, inputs)) == eager


def test_an_input_that_is_not_used_may_be_allowed() -> None:
    used, unused = leaf(3), leaf(3)
    traced = backbind.trace(used.sum(), {"used": used, "unused": unused}, allow_unused=True)()
    assert traced["unused"] is None
    assert torch.equal(traced["used"], torch.ones(3))


def test_an_input_whose_gradient_turns_out_undefined_is_refused_as_eager_does() -> None:
    value, weight = leaf(1, 1, 4, 4), leaf(1, 1, 2, 2)
    output = torch.nn.functional.conv2d(value, weight)
    # It is linear in the weight: the node reaches the value, and has no gradient for it.
    (gradient,) = torch.autograd.grad(output.sum(), value, create_graph=True)
    loss = gradient.square().sum()
    eager = raised(lambda: torch.autograd.grad(loss, [value], retain_graph=True))
    graph = backbind.trace(loss, [value])
    for one in (graph, copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert raised(one) == eager
    assert backbind.trace(loss, [value], allow_unused=True)() == (None,)
    assert dict(zip(backbind.leaves(loss), backbind.trace(loss)(), strict=True))[value] is None


def duplicate_outputs() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value = leaf(1)
    loss = value.exp()
    return [loss, loss, loss * 2], [value]


def duplicate_inputs() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value = leaf(3)
    inner = value.exp()
    return [inner.sum()], [value, inner, value, inner]


def an_output_that_is_an_input() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value = leaf(1)
    inner = value.exp()
    return [inner, inner.sin(), value], [inner, value]


def a_complex_value() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value = leaf(3, dtype=torch.complex64)
    return [(value * 2j + value.conj() * value).abs().sum()], [value]


def nothing_inside() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value, weight = leaf(0, 3), leaf(3, 2)
    return [(value @ weight).sum()], [value, weight]


def a_gradient_of_a_gradient() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value, weight = leaf(3, 4), leaf(4, 2)
    loss = (value @ weight).tanh().square().sum()
    first = torch.autograd.grad(loss, [value, weight], create_graph=True)
    return [sum((one.square().sum() for one in first), start=loss)], [value, weight]


def a_sparse_output() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    value = torch.eye(3).to_sparse().requires_grad_()
    return [torch.sparse.sum(value * 2)], [value]


@pytest.mark.parametrize(
    "program",
    [
        duplicate_outputs,
        duplicate_inputs,
        an_output_that_is_an_input,
        a_complex_value,
        nothing_inside,
        a_gradient_of_a_gradient,
        a_sparse_output,
    ],
    ids=lambda program: program.__name__,
)
def test_unusual_graphs_equal_eager(
    program: Callable[[], tuple[list[torch.Tensor], list[torch.Tensor]]],
) -> None:
    assert_traces(*program())


# --------------------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["scalar first", "vector first"])
def test_a_scalar_among_vectors_may_be_left_out(order: tuple[int, int]) -> None:
    value = leaf(3)
    both = [value.sin().sum(), value.cos()]
    outputs = [both[position] for position in order]
    given = [None if output.dim() == 0 else torch.ones(3) for output in outputs]
    graph = backbind.trace(outputs, [value])
    expected = torch.autograd.grad(outputs, [value], given, retain_graph=True)
    assert differences(graph(*given), expected) == {}
    by_name = {f"gradient_{position}": one for position, one in enumerate(given) if one is not None}
    assert differences(graph(**by_name), expected) == {}


def real_vector() -> torch.Tensor:
    return leaf(3) * 1


def complex_vector() -> torch.Tensor:
    return leaf(3, dtype=torch.complex64) * 1


def complex_scalar() -> torch.Tensor:
    return leaf(3, dtype=torch.complex128).sum()


@pytest.mark.parametrize(
    ("output", "given"),
    [
        (real_vector, None),
        (complex_vector, None),
        (complex_scalar, None),
        (real_vector, torch.ones(2)),
        (real_vector, torch.ones(1, 3)),
        (real_vector, torch.ones(())),
        (complex_scalar, torch.ones(1, dtype=torch.complex128)),
        (real_vector, torch.ones(3, dtype=torch.complex64)),
        (complex_vector, torch.ones(3)),
    ],
)
def test_gradients_that_do_not_fit_are_refused_as_eager_does(
    output: Callable[[], torch.Tensor], given: torch.Tensor | None
) -> None:
    made = output()
    inputs = backbind.leaves(made)
    graph = backbind.trace(made, inputs)
    eager = raised(lambda: torch.autograd.grad(made, inputs, given, retain_graph=True))
    assert raised(lambda: graph(given)) == eager


@pytest.mark.parametrize("given", [3, 0.5, "text", object(), leaf], ids=lambda given: type(given).__name__)
def test_gradients_of_another_type_are_refused_as_eager_does(given: Any) -> None:
    inputs = leaf(3)
    outputs = inputs * 2
    graph = backbind.trace(outputs, inputs)
    expected = raised(lambda: torch.autograd.grad(outputs, inputs, [given]))
    assert raised(lambda: graph(given)) == expected
    assert raised(lambda: graph(gradient_0=given)) == expected


def test_a_gradient_that_is_missing_is_missed_even_where_no_input_lies_behind_its_output() -> None:
    value, other = leaf(3), leaf(3)
    outputs = [value.sum(), other * 2]
    graph = backbind.trace(outputs, [value])
    eager = raised(lambda: torch.autograd.grad(outputs, [value], [None, None], retain_graph=True))
    assert raised(graph) == eager


# -------------------------------------------------------------------------------------------------------------- depth


def test_a_very_deep_graph() -> None:
    value = leaf(1)
    output = value
    for _ in range(50_000):
        output = output.neg()
    assert torch.equal(backbind.trace(output, [value])()[0], torch.ones(1))
