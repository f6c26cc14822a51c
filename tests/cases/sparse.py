"""Gradients in sparse layouts."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import data, leaf, raised_by


@case(report=PYTORCH + "pull/34904")
def sparse_embedding_grads(run_backward: RunBackward) -> Results:
    """Sparse gradients must accumulate with sparse, with dense .grad, and with dense contributions.

    Right: layouts and values as in eager.
    """
    index = torch.tensor([0, 2, 2, 4])
    w1, w2, w3 = (leaf(5, 2, seed=seed) for seed in (7, 8, 9))
    w3.grad = torch.ones(5, 2)
    for _ in range(2):
        run_backward(functional.embedding(index, w1, sparse=True).sum().backward)
    loss = functional.embedding(index, w2, sparse=True).pow(2).sum() + (w2 * 3).sum()
    run_backward(loss.backward)
    run_backward(functional.embedding(index, w3, sparse=True).sum().backward)
    return {f"w{i}": w.grad for i, w in enumerate((w1, w2, w3))}


@case()
def sparse_twice_in_one_backward(run_backward: RunBackward) -> Results:
    """One table looked up twice in a graph: sparse with sparse, sparse with dense in both orders, with hooks."""
    seen: list[str] = []
    first, second = torch.tensor([0, 2, 2]), torch.tensor([1, 2])

    def note(gradient: Tensor) -> None:
        is_coalesced = gradient.layout is torch.sparse_coo and gradient.is_coalesced()
        seen.append(f"{gradient.layout} {is_coalesced}")

    out: list[object] = []
    for step in range(4):
        w = leaf(5, 2, seed=step)
        w.register_hook(note)
        a, b = (
            functional.embedding(first, w, sparse=True),
            functional.embedding(second, w, sparse=step % 2 == 0),
        )
        loss = (a.pow(2).sum(0) * b.sum(0)).sum()
        if step > 1:
            loss = loss + w.exp().sum()
        for _ in range(2):
            run_backward(partial(loss.backward, retain_graph=True))
            out.append(w.grad)
    return {"seen": seen, "out": out}


@case()
def sparse_through_operators(run_backward: RunBackward) -> Results:
    """Sparse operands of matrix products, sums and conversions, and embedding bags of each mode."""
    out: list[object] = []
    for mode in ("sum", "mean"):
        w = leaf(6, 3, seed=1)
        bags = functional.embedding_bag(
            torch.tensor([0, 1, 1, 5]), w, torch.tensor([0, 2]), mode=mode, sparse=True
        )
        run_backward(bags.sin().sum().backward)
        out.append(w.grad)
    dense, vector = leaf(4, 3, seed=2), leaf(3, 2, seed=3)
    mask = (data(4, 3, seed=4) > 0).float()
    sparse = (dense * mask).to_sparse()
    run_backward((torch.sparse.mm(sparse, vector).pow(2).sum() + torch.sparse.sum(sparse)).backward)
    leaf_sparse = data(4, 3, seed=5).to_sparse().requires_grad_()
    run_backward((leaf_sparse.to_dense() * mask).sum().backward)
    rows = data(4, 3, seed=6).to_sparse_csr().requires_grad_()
    run_backward((rows @ vector).sum().backward)
    return {
        "out": out,
        "dense": dense.grad,
        "vector": vector.grad,
        "sparse": leaf_sparse.grad,
        "rows": rows.grad,
    }


@case()
def sparse_gradient_of_sparse_parameter(run_backward: RunBackward) -> Results:
    """Gathers whose gradients are sparse, accumulated, scaled by a hook; a hook that makes one dense: an error."""
    x, y, z = leaf(4, 3, seed=1), leaf(4, 3, seed=2), leaf(4, 3, seed=3)
    index = torch.tensor([[0, 2], [1, 1]])

    def densified(gradient: Tensor) -> Tensor:
        return gradient.to_dense() * 2

    y.register_hook(lambda g: g * 2)
    for _ in range(2):
        picked = torch.gather(x, 0, index, sparse_grad=True) * torch.gather(y, 0, index, sparse_grad=True)
        run_backward(picked.sum().backward)
    z.register_hook(densified)
    gathered = torch.gather(z, 0, index, sparse_grad=True).sum()
    results = raised_by(run_backward, gathered.backward, "has changed the type of value")
    return {**results, "x": x.grad, "y": y.grad, "z": z.grad}
