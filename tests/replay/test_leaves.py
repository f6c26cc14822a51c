"""What a replay leaves in ``.grad``: which memory, which strides, which dtype, the same object or a new one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.replay.differential import Expected, Run, Scenario, apply, assert_same_as_eager

Make = Callable[[], torch.Tensor]


def _expanded() -> torch.Tensor:
    return torch.randn(3, 1).expand(3, 4)


LAYOUTS: dict[str, Make] = {
    "contiguous": lambda: torch.randn(3, 4),
    "transposed": lambda: torch.randn(4, 3).t(),
    "channels_last": lambda: torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "channels_last_3d": lambda: torch.randn(1, 2, 3, 2, 3).contiguous(memory_format=torch.channels_last_3d),
    "expanded": _expanded,
    "every second column": lambda: torch.randn(3, 8)[:, ::2],
    "offset": lambda: torch.randn(40)[7:19].view(3, 4),
    "permuted": lambda: torch.randn(2, 3, 4).permute(2, 0, 1),
    "scalar": lambda: torch.randn(()),
    "empty": lambda: torch.randn(0, 4),
    "size one": lambda: torch.randn(1, 1),
}
"""How a leaf may lie in memory."""

FORWARDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda w: w * 3,
    "sum alone": lambda w: w.clone(),  # its gradient is the expanded one of sum()
    "used twice": lambda w: w * 2 + w.sin(),
    "transposed": lambda w: (w.movedim(0, -1) * 2) if w.dim() > 1 else w * 2,
    "contiguous copy": lambda w: w.contiguous() * w,
    "negated view": lambda w: torch._neg_view(w) * 1,
}


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grad", ["none", "zeros", "other layout"])
def test_layout_of_a_gradient(layout: str, forward: str, grad: str) -> None:
    def scenario(run: Run) -> object:
        leaf = LAYOUTS[layout]().detach().requires_grad_()
        if grad == "zeros":
            leaf.grad = torch.zeros_like(leaf)
        elif grad == "other layout":
            leaf.grad = torch.ones(leaf.shape).contiguous()
        before = leaf.grad
        with run.backward():
            FORWARDS[forward](leaf).sum().backward()
            run.note(leaf.grad, before is None or leaf.grad is before)
            (FORWARDS[forward](leaf) * 2).sum().backward()
        return leaf.grad, before is None or leaf.grad is before

    assert_same_as_eager(scenario)


def _stealing(make: Make, forward: Callable[[torch.Tensor], torch.Tensor], keep: bool) -> Scenario:
    def scenario(run: Run) -> object:
        leaf = make().detach().requires_grad_()
        seen: list[tuple[int, object]] = []

        def look(grad: torch.Tensor) -> None:
            seen.append((grad.data_ptr(), grad if keep else None))
            run.note("gradient", grad)

        leaf.register_hook(look)
        out = forward(leaf)
        out.register_hook(lambda grad: seen.append((grad.data_ptr(), grad if keep else None)))
        given = torch.ones_like(out)
        with run.backward():
            out.backward(given)
        assert leaf.grad is not None
        return [pointer == leaf.grad.data_ptr() for pointer, _ in seen], leaf.grad, given

    return scenario


@pytest.mark.parametrize("keep", [False, True], ids=["let go", "kept by a hook"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("forward", [*FORWARDS, "itself"])
def test_gradient_is_stolen_or_copied(layout: str, forward: str, keep: bool) -> None:
    function = FORWARDS.get(forward, lambda w: w.view_as(w))
    assert_same_as_eager(_stealing(LAYOUTS[layout], function, keep))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("retain_graph", [False, True])
@pytest.mark.parametrize("grad", ["none", "plain", "requires grad"])
def test_a_grad_that_is_there_is_added_to_in_place_unless_a_graph_is_built(
    grad: str, retain_graph: bool, create_graph: bool
) -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(3, requires_grad=True)
        if grad != "none":
            leaf.grad = torch.ones(3, requires_grad=grad == "requires grad")
        before, alias = leaf.grad, None if leaf.grad is None else leaf.grad.detach()
        loss = (leaf**3).sum()
        with run.backward():
            loss.backward(retain_graph=retain_graph, create_graph=create_graph)
        return leaf.grad is before, leaf.grad, before, alias

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("first", ["none", "sparse", "dense", "sparse uncoalesced"])
@pytest.mark.parametrize("steps", ["ss", "sd", "ds", "sds", "dss", "b", "bsd"])
def test_sparse_and_dense_gradients_of_one_leaf(first: str, steps: str) -> None:
    indices = torch.tensor([1, 4, 1])

    def scenario(run: Run) -> object:
        table = torch.randn(6, 2, requires_grad=True)
        if first == "dense":
            table.grad = torch.ones(6, 2)
        elif first != "none":
            values = torch.tensor([[0, 0, 3]] if first == "sparse uncoalesced" else [[0, 2, 3]])
            table.grad = torch.sparse_coo_tensor(
                values, torch.ones(3, 2), (6, 2), is_coalesced=first == "sparse"
            )
        before = table.grad
        for kind in steps:
            rows = torch.nn.functional.embedding(indices, table, sparse=True)
            loss = (table * 2).sum() if kind in "db" else torch.zeros(())
            if kind in "sb":
                loss = loss + (rows * rows).sum()
            with run.backward():
                loss.backward()
            run.note(kind, table.grad, table.grad is before)
        return table.grad

    assert_same_as_eager(scenario)


def test_shared_leaf_sums_in_the_engines_order() -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(64, requires_grad=True)
        scales = torch.randn(12) * 10.0 ** torch.arange(-6, 6)
        total = sum(((leaf * scale).sin() * scale).sum() for scale in scales)
        assert isinstance(total, torch.Tensor)
        with run.backward():
            total.backward()
        return leaf.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("leaf_dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("grad_dtype", ["unset", None, torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("given", [None, torch.float32, torch.bfloat16])
def test_dtype_of_a_gradient(
    leaf_dtype: torch.dtype, grad_dtype: torch.dtype | str | None, given: torch.dtype | None
) -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(4).to(leaf_dtype).requires_grad_()
        if grad_dtype != "unset":
            leaf.grad_dtype = grad_dtype  # type: ignore[assignment]
        out = []
        for _ in range(2):
            hidden = leaf * 2

            def cast(grad: torch.Tensor) -> torch.Tensor | None:
                return None if given is None else grad.to(given)

            hidden.register_hook(cast)
            out.append(run.attempt(lambda hidden=hidden: hidden.sum().backward()))  # type: ignore[misc]
            out.append(leaf.grad)
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("how", ["backward", "grad", "inputs", "with another root", "twice"])
def test_a_leaf_as_root(how: str) -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(3, requires_grad=True)
        leaf.register_hook(lambda grad: run.note("hook", grad))
        leaf.register_post_accumulate_grad_hook(lambda p: run.note("after", p.grad))
        ones = torch.ones(3)
        with run.backward():
            if how == "backward":
                leaf.backward(ones)
            elif how == "grad":
                return torch.autograd.grad(leaf, leaf, ones)
            elif how == "inputs":
                leaf.backward(ones, inputs=[leaf])
            elif how == "with another root":
                torch.autograd.backward([leaf, (leaf * 2).sum()], [ones, None])
            else:
                torch.autograd.backward([leaf, leaf], [ones, ones * 2])
        return leaf.grad, ones

    assert_same_as_eager(scenario)


@pytest.mark.parametrize(
    "action", ["set grad none", "step", "raise", "replace", "register another", "backward"]
)
def test_post_accumulate_grad_hooks(action: str) -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(3, requires_grad=True)

        def hook(parameter: torch.Tensor) -> None:
            run.note("hook", parameter.grad, parameter is leaf, torch.is_grad_enabled())
            if action == "set grad none":
                parameter.grad = None
            elif action == "step":
                with torch.no_grad():
                    parameter.sub_(parameter.grad, alpha=0.5)  # type: ignore[arg-type]
            elif action == "raise":
                raise ValueError("from the hook")
            elif action == "replace":
                parameter.grad = torch.full((3,), 7.0)
            elif action == "register another":
                parameter.register_post_accumulate_grad_hook(lambda p: run.note("another", p.grad))
            else:
                with torch.enable_grad():
                    run.note("inner", torch.autograd.grad((parameter**2).sum(), parameter))

        leaf.register_post_accumulate_grad_hook(hook)
        leaf.register_post_accumulate_grad_hook(lambda p: run.note("second", p.grad))
        out = []
        for _ in range(2):
            out.append(run.attempt(lambda: (leaf * 3).sum().backward()))
            out.append(leaf.grad)
        return out, leaf

    assert_same_as_eager(scenario)


@pytest.mark.parametrize(
    "change", ["requires_grad off", "requires_grad off and on", "data", "set_", "detach_"]
)
def test_a_leaf_changed_between_forward_and_backward(change: str) -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(3, requires_grad=True)
        other = torch.randn(3, requires_grad=True)
        loss = (leaf * 2 + other * 3).sum()
        if change.startswith("requires_grad"):
            leaf.requires_grad_(False)
            if change.endswith("on"):
                leaf.requires_grad_(True)
        elif change == "data":
            leaf.data = torch.zeros(3, dtype=torch.float64)
        elif change == "set_":
            with torch.no_grad():
                leaf.set_(torch.zeros(5))  # type: ignore[call-overload]
        else:
            leaf.detach_()
        return run.attempt(loss.backward), leaf.grad, other.grad

    assert_same_as_eager(scenario)


def test_a_leaf_that_only_the_graph_keeps_alive() -> None:
    def scenario(run: Run) -> object:
        leaf = torch.randn(3, requires_grad=True)
        leaf.register_post_accumulate_grad_hook(lambda p: run.note("after", p.grad))
        loss = (leaf.sin() * 2).sum()
        del leaf
        with run.backward():
            loss.backward()
        return None

    assert_same_as_eager(scenario)


def test_a_leaf_may_take_the_place_of_another_in_the_graph() -> None:
    def scenario(run: Run) -> object:
        first, second = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        grads = []
        for left, right in ((first, second), (second, first), (first, first), (second, second)):
            first.grad = second.grad = None
            with run.backward():
                (left * right.sin()).sum().backward()
            grads += [first.grad, second.grad]
        return grads

    assert_same_as_eager(scenario)


def test_gradient_of_a_leaf_that_gets_none() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> None:
            return None

    def scenario(run: Run) -> object:
        leaf, other = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        leaf.register_hook(lambda grad: run.note("hook", grad))
        leaf.register_post_accumulate_grad_hook(lambda p: run.note("after", p.grad))
        with run.backward():
            (apply(Nothing, leaf) + other).sum().backward()
        return leaf.grad, other.grad

    assert_same_as_eager(scenario, Expected())
