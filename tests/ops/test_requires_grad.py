"""Which gradients an operator computes is decided by needs_input_grad, not by what its saved values require.

A live node's saved inputs require grad where their gradients are needed. The same values may come to an operator
detached, out of a traced graph for example, and must give the same gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor

from tests.ops.recorded_calls import RecordedCall, recorded_calls
from tests.oracle.compare import difference
from tests.oracle.masks import subsets
from tests.oracle.outcome import Outcome, outcome_of

_NOT_DIFFERENTIABLE = "is not differentiable with respect to argument"
"""In the refusal of torch's to compute a graph through a value that requires grad and has no derivative."""


SOLVE: Any = backbind.ops.LinalgSolveExBackward0


@pytest.fixture(scope="module")
def calls() -> list[RecordedCall]:
    return recorded_calls(samples=2, per_node=1)


def in_state(value: Any, requires_grad: bool) -> Any:
    """A saved value without a history, as a leaf that requires grad or as none."""
    if isinstance(value, Tensor):
        differentiable = value.is_floating_point() or value.is_complex()
        return value.detach().requires_grad_(requires_grad and differentiable)
    if isinstance(value, list):
        return [in_state(one, requires_grad) for one in value]
    return value


def run(call: RecordedCall, mask: Sequence[bool], requires_grad: bool, face: str) -> Outcome:
    operator: Callable[..., object] = getattr(call.operator, face) if face else call.operator
    return outcome_of(
        lambda: operator(call.grads, mask, *(in_state(one, requires_grad) for one in call.saved))
    )


@pytest.mark.slow
def test_saved_values_may_require_grad_or_not(calls: list[RecordedCall]) -> None:
    found = []
    for call, grad_mode in product(calls, (False, True)):
        faces = ("", "delegate") if call.operator.mode == "inline" else ("",)
        for mask in list(subsets(call.needs_input_grad))[:4]:
            with torch.set_grad_enabled(grad_mode):
                outcomes = [run(call, mask, state, face) for state in (True, False) for face in faces]
            if outcomes[0].error is not None and _NOT_DIFFERENTIABLE in outcomes[0].error[1]:
                continue  # with a graph, that a value without a derivative requires grad is an error
            found += [
                f"{call.operator.name}, needs_input_grad {mask}, grad mode {grad_mode}: {what}"
                for outcome in outcomes[1:]
                if (what := difference(outcomes[0], outcome))
            ]
    assert not found, "\n".join(found[:20])
    assert len({call.operator.name for call in calls}) > 550


def solve(left: bool = True) -> tuple[Any, list[Any], Tensor, Tensor]:
    """The node of linalg.solve, its saved values, and what it was called with."""
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(3, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    b = torch.randn(3, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    node: Any = torch.linalg.solve_ex(a, b, left=left)[0].grad_fn
    _, *saved = backbind.pack(node)
    return node, saved, a, b


def without_history(saved: Sequence[Any], *, but: str = "") -> list[Any]:
    names = [one.name for one in SOLVE.saved]
    return [
        one.detach() if isinstance(one, Tensor) and name != but else one
        for name, one in zip(names, saved, strict=True)
    ]


@pytest.mark.parametrize("mask", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("given", ["nothing", "grad", "A", "result"])
@pytest.mark.parametrize("left", [True, False])
def test_a_gradient_requires_grad_only_for_what_was_given(
    mask: tuple[bool, bool], given: str, left: bool
) -> None:
    """With grad mode on, a saved value without a history leads nowhere, as in a formula written by hand."""
    _, saved, _, _ = solve(left)
    grad = torch.ones(3, 3, dtype=torch.float64, requires_grad=given == "grad")
    gradients = SOLVE([grad], mask, *without_history(saved, but=given))
    # gB = A^-H grad; gA = -gB result^H.
    depends = ({"grad", "A", "result"}, {"grad", "A"})
    for gradient, flag, sources in zip(gradients, mask, depends, strict=True):
        assert (gradient is not None) is flag
        if gradient is not None:
            assert gradient.requires_grad is (given in sources)


def test_a_stand_in_is_no_leaf_of_a_double_backward() -> None:
    _, saved, _, _ = solve()
    grad = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    gradients = SOLVE([grad], (True, True), *without_history(saved))
    total = sum(one.sum() for one in gradients if one is not None)
    assert isinstance(total, Tensor)
    assert [id(one) for one in backbind.leaves(total)] == [id(grad)]
    total.backward()
    assert grad.grad is not None


@pytest.mark.parametrize(
    "grad_mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"]
)
def test_values_of_inference_mode(grad_mode: Callable[[], Any]) -> None:
    node, saved, _, _ = solve()
    grad = torch.ones(3, 3, dtype=torch.float64)
    with torch.no_grad():  # with grad mode on, the formula takes another way
        expected = node(grad)
    with grad_mode():
        values = [one.detach().clone() if isinstance(one, Tensor) else one for one in saved]
        gradients = SOLVE([grad], (True, True), *values)
    assert not difference(Outcome(tuple(expected)), Outcome(tuple(gradients)))


_SECOND_DERIVATIVES: dict[str, Callable[[Tensor], Tensor]] = {
    "det": torch.det,
    "slogdet": lambda a: torch.slogdet(a)[1],
    "logdet": lambda a: torch.logdet(a @ a.mT),
    "eigvals": lambda a: torch.linalg.eigvals(a).abs().sum(),
    "eigh": lambda a: torch.linalg.eigh(a + a.mT)[0].pow(3).sum(),
    "svd": lambda a: torch.linalg.svd(a)[1].pow(3).sum(),
    "solve": lambda a: torch.linalg.solve(a, a @ a).pow(2).sum(),
    "inv": lambda a: torch.linalg.inv(a).pow(2).sum(),
}


@pytest.mark.parametrize("name", _SECOND_DERIVATIVES)
@pytest.mark.parametrize("attached", [True, False], ids=["attached", "detached"])
def test_second_derivatives(name: str, attached: bool) -> None:
    """Operators called one after another give eager's second derivatives, whatever the saved values require.

    Where they have a history, autograd differentiates what the operators did; where they have none, the graph of the
    first derivative is walked once more.
    """
    generator = torch.Generator().manual_seed(2)
    a = torch.randn(4, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    function = _SECOND_DERIVATIVES[name]
    (first,) = torch.autograd.grad(function(a), a, create_graph=True)
    (expected,) = torch.autograd.grad(first.sin().sum(), a, retain_graph=True)
    if attached:
        ours = gradient_by_operators(function(a), a, detach=False)
        assert not difference(Outcome((first,)), Outcome((ours,)))
        (second,) = torch.autograd.grad(ours.sin().sum(), a)
    else:
        second = gradient_by_operators(first.sin().sum(), a, detach=True)
    torch.testing.assert_close(second, expected, rtol=1e-10, atol=1e-10)


def gradient_by_operators(loss: Tensor, wanted: Tensor, *, detach: bool) -> Tensor:
    """The gradient of ``loss``, each of its nodes run by its operator on what the node saved."""
    assert loss.grad_fn is not None
    order: list[Any] = []
    met = set()

    def visit(node: Any) -> None:
        stack = [(node, iter([function for function, _ in node.next_functions if function is not None]))]
        met.add(node)
        while stack:
            current, following = stack[-1]
            function = next((one for one in following if one not in met), None)
            if function is None:
                order.append(current)
                stack.pop()
                continue
            met.add(function)
            stack.append((function, iter([one for one, _ in function.next_functions if one is not None])))

    visit(loss.grad_fn)
    arrived: dict[Any, list[Tensor | None]] = {
        loss.grad_fn: [
            torch.ones_like(loss) if at == loss.output_nr else None for at in range(_count(loss.grad_fn))
        ]
    }
    for node in reversed(order):
        grads = arrived.get(node)
        if grads is None:
            continue
        if hasattr(node, "variable"):
            assert node.variable is wanted
            assert grads[0] is not None
            return grads[0]
        mask, *saved = backbind.pack(node)
        if detach:
            saved = [in_state(one, False) for one in saved]
        assert isinstance(mask, list)
        gradients = backbind.ops.for_node(node)(grads, mask, *saved)
        for gradient, (function, at) in zip(gradients, node.next_functions, strict=True):
            if gradient is None or function is None:
                continue
            gradient = gradient.sum_to_size(tuple(function._input_metadata[at].shape))
            slots = arrived.setdefault(function, [None] * _count(function))
            before = slots[at]
            slots[at] = gradient if before is None else before + gradient
    raise AssertionError("the gradient did not arrive")


def _count(node: Any) -> int:
    return len(node._input_metadata)
