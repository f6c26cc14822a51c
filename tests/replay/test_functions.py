"""Python functions, custom operators, checkpoints and compiled regions inside a captured backward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.autograd.function import Function, FunctionCtx, once_differentiable
from torch.utils import checkpoint as checkpoints

from tests.replay.differential import Run, apply, assert_same_as_eager


class Product(Function):
    """Saves inputs, and returns None where nothing is needed."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, y = ctx.saved_tensors
        needs = ctx.needs_input_grad
        return grad * y * ctx.scale if needs[0] else None, grad * x * ctx.scale if needs[1] else None, None


class ProductOnce(Function):
    forward = staticmethod(Product.forward)
    backward = staticmethod(once_differentiable(Product.backward))  # type: ignore[assignment]


class SetUp(Function):
    """The form with a setup_context of its own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, y: torch.Tensor, scale: float) -> torch.Tensor:
        return x * y * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.scale = inputs[2]

    backward = staticmethod(Product.backward)


class Unmaterialized(Function):
    """Two outputs; undefined gradients stay None."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor, run: Run) -> Any:
        ctx.set_materialize_grads(False)
        ctx.run = run
        return x.clone(), y.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.run.note("backward", grads)
        return *grads, None


class Materialized(Unmaterialized):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor, run: Run) -> Any:
        ctx.run = run
        return x.clone(), y.clone()


class Dirty(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


class WithIndices(Function):
    """An output that has no gradient, and one that is the input itself."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        values, indices = x.sort()
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        return values, indices, x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, nothing: torch.Tensor, direct: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(grad).scatter(0, ctx.saved_tensors[0], grad) + direct


class View(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x[:2]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return torch.cat([grad, torch.zeros(1)])


class Returns(Function):
    """Whose backward gives back whatever it was told to."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, result: Callable[[torch.Tensor], Any]) -> torch.Tensor:
        ctx.result = result
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return ctx.result(grad)


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3,)), requires_grad=True)


def _two(run: Run, function: Any, used: str, x: torch.Tensor, y: torch.Tensor) -> Any:
    first, second = apply(function, x, y, run)
    parts = {"first": first.sum(), "second": second.sum(), "both": (first * second).sum()}
    return parts[used]


FORWARDS: dict[str, Callable[[Run, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "product": lambda run, x, y: apply(Product, x, y, 2.0),
    "product of one that needs it": lambda run, x, y: apply(Product, x, y.detach(), 2.0),
    "product with itself": lambda run, x, y: apply(Product, x, x, 3.0),
    "once differentiable": lambda run, x, y: apply(ProductOnce, x, y, 2.0),
    "setup_context": lambda run, x, y: apply(SetUp, x, y, 0.5),
    "unmaterialized first": lambda run, x, y: _two(run, Unmaterialized, "first", x, y),
    "unmaterialized second": lambda run, x, y: _two(run, Unmaterialized, "second", x, y),
    "unmaterialized both": lambda run, x, y: _two(run, Unmaterialized, "both", x, y),
    "materialized first": lambda run, x, y: _two(run, Materialized, "first", x, y),
    "dirty": lambda run, x, y: apply(Dirty, x * 1) * y,
    "dirty view": lambda run, x, y: apply(Dirty, (x * 1).view(-1)) * y,
    "non-differentiable output": lambda run, x, y: (lambda v, i, d: v * y[i] + d)(*apply(WithIndices, x)),
    "view": lambda run, x, y: apply(View, x * 1) * y[:2],
    "chain": lambda run, x, y: apply(Product, apply(Product, x, y, 2.0), apply(SetUp, y, x, 1.0), 3.0),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("forward", FORWARDS)
def test_python_functions(forward: str, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        x, y = leaf(), leaf()
        out: list[object] = []
        for _ in range(2):
            value = run.attempt(
                lambda: FORWARDS[forward](run, x, y).sin().sum().backward(create_graph=create_graph)
            )
            out += [value, x.grad, y.grad]
        # Asked for what lies beyond the root, eager fails in an index of its own (test_requests.py).
        reaches_back = forward != "once differentiable"
        if create_graph and reaches_back and x.grad is not None and x.grad.requires_grad:
            grad = x.grad
            out.append(run.attempt(lambda: torch.autograd.grad(grad.sum(), [x, y], allow_unused=True)))
        return out

    assert_same_as_eager(scenario)


RESULTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "none": lambda grad: None,
    "nones": lambda grad: (None, None),
    "too many": lambda grad: (grad, None, None, grad),
    "too many nones": lambda grad: (grad, None, None, None),
    "too few": lambda grad: (grad,),
    "gradient for no tensor": lambda grad: (grad, grad),
    "wrong shape": lambda grad: (torch.ones(7), None),
    "to be reduced": lambda grad: (grad.expand(4, 3), None),
    "to be expanded": lambda grad: (grad.sum(), None),
    "other dtype": lambda grad: (grad.double(), None),
    "integers": lambda grad: (grad.long(), None),
    "complex": lambda grad: (grad * 1j, None),
    "other device": lambda grad: (grad.to("meta"), None),
    "sparse": lambda grad: (grad.to_sparse(), None),
    "a number": lambda grad: (2.0, None),
    "the gradient itself": lambda grad: (grad, None),
    "a view of it": lambda grad: (grad.view(-1), None),
    "a list": lambda grad: [grad, None],
}


@pytest.mark.parametrize("behind", ["leaf", "node"])
@pytest.mark.parametrize("result", RESULTS)
def test_what_a_function_returns(result: str, behind: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf()
        loss = apply(Returns, x if behind == "leaf" else x.exp(), RESULTS[result]).sum()
        return run.attempt(loss.backward), x.grad

    assert_same_as_eager(scenario)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, SystemExit, StopIteration, ValueError, MemoryError, OSError]
)
def test_whatever_a_function_raises_comes_out_and_the_next_backward_runs(error: type[BaseException]) -> None:
    def scenario(run: Run) -> object:
        def fails(grad: torch.Tensor) -> Any:
            raise error(2, "text")

        x, caught = leaf(), None
        try:
            with run.backward():
                apply(Returns, x.exp(), fails).sum().backward()
        except BaseException as found:
            caught = (type(found), found.args == (2, "text"), found.__cause__ is None)
        return caught, run.attempt(x.exp().sum().backward), x.grad

    assert_same_as_eager(scenario)


def _block(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(torch.tanh(x @ w), 0.5) * w.sum()


def _save_products(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
    is_product = op == torch.ops.aten.mm.default
    policy = checkpoints.CheckpointPolicy
    return policy.MUST_SAVE if is_product else policy.PREFER_RECOMPUTE


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "reentrant": {"use_reentrant": True},
    "non-reentrant": {"use_reentrant": False},
    "non-reentrant, no early stop": {"use_reentrant": False, "early_stop": False},
    "selective": {
        "use_reentrant": False,
        "context_fn": functools.partial(checkpoints.create_selective_checkpoint_contexts, _save_products),
    },
}


@pytest.mark.parametrize("how", ["backward", "grad", "inputs", "retained", "nested", "sequence", "failing"])
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints(kind: str, how: str) -> None:
    def scenario(run: Run) -> object:
        x, w = leaf(4, 4), leaf(4, 4)
        x.register_hook(lambda grad: run.note("x", grad, torch.is_grad_enabled()))
        w.register_hook(lambda grad: run.note("w", grad))
        calls = []

        def block(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            run.note("block", torch.is_grad_enabled())
            if how == "failing" and len(calls) > 1:
                raise RuntimeError("while recomputing")
            return _block(a, b)

        def again(function: Any, *inputs: Any) -> Any:
            return checkpoints.checkpoint(function, *inputs, **CHECKPOINTS[kind])

        if how == "nested":
            out = again(lambda a, b: again(block, a.sin(), b) @ b, x, w)
        elif how == "sequence":
            out = again(block, again(block, again(block, x, w), w), w)
        else:
            out = again(block, x, w)
        loss = (out * out).sum()
        if how == "grad":
            return run.attempt(lambda: torch.autograd.grad(loss, [x, w]))
        if how == "inputs":
            return run.attempt(lambda: loss.backward(inputs=[w])), x.grad, w.grad
        first = run.attempt(lambda: loss.backward(retain_graph=how == "retained"))
        return first, run.attempt(loss.backward), x.grad, w.grad

    assert_same_as_eager(scenario)


@pytest.fixture
def scale_op() -> Iterator[Any]:
    """A custom operator with a formula, one without, and one with a formula of its own kind of saving."""
    with torch.library._scoped_library("backbind_replay_tests", "FRAGMENT"):

        @torch.library.custom_op("backbind_replay_tests::scale", mutates_args=())
        def scale(x: torch.Tensor, by: float) -> torch.Tensor:
            return x * by

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.by = inputs[1]
            ctx.save_for_backward(output)

        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad * ctx.by + 0 * ctx.saved_tensors[0], None

        scale.register_autograd(backward, setup_context=setup)

        @torch.library.custom_op("backbind_replay_tests::plain", mutates_args=())
        def plain(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        yield scale, plain


@pytest.mark.parametrize("create_graph", [False, True])
def test_custom_operators(scale_op: Any, create_graph: bool) -> None:
    scale, plain = scale_op

    def scenario(run: Run) -> object:
        x = leaf()
        out: list[object] = []
        for by in (2.0, 3.0):
            loss = scale(x.sin(), by).sum()
            out += [run.attempt(lambda loss=loss: loss.backward(create_graph=create_graph)), x.grad]  # type: ignore[misc]
        return out, run.attempt(lambda: plain(x).sum().backward())

    assert_same_as_eager(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("regions", ["one", "two with an eager hook between", "function inside"])
def test_compiled_regions_of_the_forward(regions: str, dynamic: bool) -> None:
    torch._dynamo.reset()

    @torch.compile(backend="aot_eager", dynamic=dynamic)
    def region(x: torch.Tensor, w: torch.Tensor) -> Any:
        if regions == "function inside":
            return apply(SetUp, x @ w, x, 2.0).sin()
        return torch.relu(x @ w).sin() * 2

    def scenario(run: Run) -> object:
        w = leaf(4, 4)
        out = []
        for batch in (4, 4, 4) if regions == "function inside" else (3, 5, 3):
            x = torch.ones(batch, 4, requires_grad=True)
            hidden = region(x, w)
            if regions.startswith("two"):
                hidden.register_hook(lambda grad: run.note(grad))
                hidden = region(hidden * 2, w)
            out += [run.attempt(hidden.sum().backward), x.grad, w.grad]
        return out

    try:
        assert_same_as_eager(scenario)
    finally:
        torch._dynamo.reset()


def test_a_context_that_is_kept_is_freed_like_the_engines() -> None:
    def scenario(run: Run) -> object:
        kept: list[Any] = []

        class Keeps(Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                kept.append(ctx)
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx: FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
                run.note("inside", len(kept[-1].saved_tensors), ctx is kept[-1])
                return grad * 2

        x = leaf()
        with run.backward():
            apply(Keeps, x).sum().backward()
        return run.attempt(lambda: kept[-1].saved_tensors), x.grad

    assert_same_as_eager(scenario)
