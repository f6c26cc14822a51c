"""The walk finds the nodes that the engine runs, in the order in which it runs them."""

from __future__ import annotations

import backbind
import pytest
import torch
from backbind import _C

from tests.plan.random_programs import run_program


def all_nodes(root: torch.Tensor) -> list[torch.autograd.graph.Node]:
    """Every node that can be reached, each once."""
    start = torch.autograd.graph.get_gradient_edge(root).node
    seen, pending = {start}, [start]
    while pending:
        for child, _ in pending.pop().next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                pending.append(child)
    return list(seen)


def engine_order(loss: torch.Tensor, inputs: list[torch.Tensor] | None = None) -> list[tuple[str, int]]:
    """Name and sequence number of each node, as the engine runs them."""
    order: list[tuple[str, int]] = []
    handles = []
    for node in all_nodes(loss):
        entry = (node.name(), node._sequence_nr())
        handles.append(node.register_prehook(lambda _, entry=entry: order.append(entry)))
    torch.autograd.backward(loss, retain_graph=True, inputs=inputs)
    for handle in handles:
        handle.remove()
    return order


def walk_order(loss: torch.Tensor, wanted: list[torch.Tensor]) -> list[str]:
    """Names of the nodes in the order of the walk."""
    _, steps = _C.lower([loss], wanted, False)
    return [step[0] for step in steps]


@pytest.mark.parametrize("seed", range(60))
def test_walk_has_the_engines_order(seed: int) -> None:
    loss = run_program(seed).loss
    expected = [name for name, _ in engine_order(loss)]
    assert walk_order(loss, backbind.leaves(loss)) == expected


@pytest.mark.parametrize("seed", range(60))
def test_leaves_come_in_the_order_of_accumulation(seed: int) -> None:
    program = run_program(seed)
    accumulated: list[int] = []
    handles = [
        leaf.register_post_accumulate_grad_hook(lambda leaf: accumulated.append(id(leaf)))
        for leaf in program.leaves
    ]
    program.loss.backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    assert [id(leaf) for leaf in backbind.leaves(program.loss)] == accumulated


@pytest.mark.parametrize("seed", range(30))
def test_only_nodes_on_a_path_to_a_wanted_tensor_run(seed: int) -> None:
    program = run_program(seed)
    reached = backbind.leaves(program.loss)
    if not reached:
        pytest.fail("the program depends on no leaf")
    wanted = reached[:1]
    expected = [name for name, _ in engine_order(program.loss, inputs=wanted)]
    _, steps = _C.lower([program.loss], wanted, False)
    assert [step[0] for step in steps] == expected


def test_a_walk_runs_nothing_and_keeps_the_graph() -> None:
    program = run_program(3)
    _C.lower([program.loss], backbind.leaves(program.loss), False)
    assert all(leaf.grad is None for leaf in program.leaves)
    program.loss.backward()


def test_a_very_deep_graph_is_walked_without_recursion() -> None:
    value = leaf = torch.ones(1, requires_grad=True)
    for _ in range(200_000):
        value = value.neg()
    _, steps = _C.lower([value], [leaf], False)
    assert len(steps) == 200_001
    del steps
    # Freeing a deep graph is torch's own business; it does so without recursion too.
    del value


def test_a_tensor_without_grad_is_refused() -> None:
    with pytest.raises(RuntimeError) as caught:
        backbind.leaves([torch.ones(2)])
    assert str(caught.value) == "element 0 of outputs does not require grad and does not have a grad_fn"


@pytest.mark.parametrize(
    ("roots", "message"),
    [
        ((torch.ones(1, requires_grad=True),), "outputs must be a list of tensors, got tuple"),
        ([3], "outputs must be tensors, element 0 is a int"),
    ],
)
def test_what_is_no_tensor_is_refused(roots: object, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        _C.lower(roots, [], False)  # type: ignore[arg-type]
    assert str(caught.value) == message
