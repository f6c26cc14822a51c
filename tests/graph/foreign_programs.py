"""Programs whose backward runs code that has no operator: hooks, functions, changes of views, code that unpacks.

Each takes a log, in which its code notes that it is called, and gives an output and the inputs to be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

from tests.cases.values import node_of, noting
from tests.graph.gradients import leaf

Log = list[str]
Made = tuple[Tensor, list[Tensor]]
Program = Callable[[Log], Made]

PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def applied(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    """The function's result, of whatever type."""
    return function.apply(*arguments)


# --------------------------------------------------------------------------------------------------------------- hooks


@program
def tensor_hooks(log: Log) -> Made:
    value = leaf(3)
    inner = value.exp()
    loss = (inner * inner.sin()).sum()
    loss.register_hook(noting(log, "loss", lambda gradient: gradient * 2))
    inner.register_hook(noting(log, "inner, first", lambda gradient: gradient + 1))
    inner.register_hook(noting(log, "inner, second"))
    value.register_hook(noting(log, "value", lambda gradient: gradient * 3))
    return loss, [value]


@program
def hooks_that_change_gradients_in_place(log: Log) -> Made:
    value, other = leaf(3), leaf(3)
    left, right = value * 1, other * 1
    loss = ((left + right) * value).sum()
    loss.register_hook(noting(log, "loss", lambda gradient: gradient.mul_(2)))
    left.register_hook(noting(log, "left", lambda gradient: gradient.mul_(3)))
    right.register_hook(noting(log, "right", lambda gradient: gradient.mul_(5)))
    return loss, [value, other]


@program
def hooks_on_an_input_whose_gradient_goes_on(log: Log) -> Made:
    value = leaf(3)
    inner = value.exp()
    inner.register_hook(noting(log, "inner", lambda gradient: gradient * 2))
    return inner.square().sum(), [inner, value]


@program
def retained_gradients(log: Log) -> Made:
    value = leaf(3)
    inner = value.exp()
    inner.retain_grad()
    inner.register_hook(noting(log, "inner", lambda gradient: gradient * 2))
    return inner.square().sum(), [value]


@program
def node_pre_hooks(log: Log) -> Made:
    value = leaf(3, 4)
    first, last = value.unbind()[:2]
    node_of(first).register_prehook(
        noting(log, "unbind", lambda gradients: (*gradients[:1], gradients[0] * 2, *gradients[2:]))
    )
    node_of(value).register_prehook(noting(log, "value", lambda gradients: (gradients[0] * 3,)))
    return (first * last).sum(), [value]


@program
def node_post_hooks(log: Log) -> Made:
    value, other = leaf(3), leaf(3)
    product = value.exp() * other
    node_of(product).register_hook(noting_results(log, "mul", lambda first, second: (first * 2, second * 3)))
    node_of(product).register_hook(noting_results(log, "mul again"))
    node_of(value).register_hook(noting_results(log, "value"))
    return product.sum(), [value, other]


def noting_results(
    log: Log, entry: str, change: Callable[..., object] | None = None
) -> Callable[[Any, Any], Any]:
    """A hook behind a node, which notes which results and gradients there are."""

    def hook(results: Any, gradients: Any) -> object:
        log.append(f"{entry} {[one is not None for one in results]} {[one is not None for one in gradients]}")
        return None if change is None else change(*results)

    return hook


@program
def every_kind_of_hook_on_one_node(log: Log) -> Made:
    value = leaf(3)
    inner = value.exp()
    node_of(inner).register_hook(noting_results(log, "post", lambda result: (result + 1,)))
    node_of(inner).register_prehook(noting(log, "pre", lambda gradients: (gradients[0] * 3,)))
    inner.retain_grad()
    inner.register_hook(noting(log, "tensor", lambda gradient: gradient * 2))
    return (inner * 2).sum(), [value]


@program
def hooks_where_no_gradient_comes_in(log: Log) -> Made:
    value = leaf(3)
    inner = value.exp()
    node_of(inner).register_hook(noting_results(log, "exp"))
    return applied(NoGradient, inner).sum() + value.sum(), [value]


class NoGradient(torch.autograd.Function):
    """Its gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> None:
        return None


@program
def hooks_on_modules(log: Log) -> Made:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))

    def hook(module: nn.Module, results: Any, gradients: Any) -> Any:
        log.append(f"behind {type(module).__name__}")
        return (results[0] * 2,)

    def pre_hook(module: nn.Module, gradients: Any) -> None:
        log.append(f"before {type(module).__name__}")

    layers.register_full_backward_hook(hook)
    layers[1].register_full_backward_pre_hook(pre_hook)
    layers[2].register_full_backward_hook(hook)
    value = leaf(3, 4)
    return layers(value).sum(), [value, *layers.parameters()]


@program
def callbacks_at_the_end_of_the_backward(log: Log) -> Made:
    engine: Any = torch.autograd.Variable._execution_engine
    value = leaf(3)
    inner = value.exp()
    inner.register_hook(lambda gradient: engine.queue_callback(lambda: log.append("the end")))
    value.register_hook(noting(log, "value"))
    return inner.sum(), [value]


@program
def hooks_on_a_tensor_before_and_after_it_is_changed(log: Log) -> Made:
    value = leaf(4)
    copy = value.clone()
    copy.retain_grad()
    copy.register_hook(noting(log, "before", lambda gradient: gradient * 2))
    copy[0] = 1
    copy.register_hook(noting(log, "after", lambda gradient: gradient * 3))
    return copy.square().sum(), [value]


@program
def hooks_on_sparse_gradients(log: Log) -> Made:
    weight = leaf(6, 3)
    weight.register_hook(noting(log, "weight", lambda gradient: gradient * 2))
    picked = nn.functional.embedding(torch.tensor([1, 4, 1]), weight, sparse=True)
    return picked.sum(), [weight]


@program
def hooks_on_a_subclass(log: Log) -> Made:
    value = TwoTensor(torch.arange(3.0), torch.ones(3)).requires_grad_()
    inner = value.exp()
    inner.register_hook(noting(log, "inner", lambda gradient: gradient * 2))
    return inner.sum(), [value]


@program
def hooks_that_ask_where_they_are(log: Log) -> Made:
    def hook(gradient: Tensor) -> None:
        is_in_backward = torch._C._current_graph_task_id() != -1
        log.append(f"{is_in_backward} {torch.is_grad_enabled()} {gradient.requires_grad}")

    value = leaf(3)
    inner = value.exp()
    inner.register_hook(hook)
    return inner.sum(), [value]


@program
def hooks_that_run_a_backward(log: Log) -> Made:
    def hook(gradient: Tensor) -> Tensor:
        log.append("inner backward")
        with torch.enable_grad():
            other = leaf(3)
            return gradient + torch.autograd.grad(other.sin().sum(), other)[0]

    value = leaf(3)
    inner = value.exp()
    inner.register_hook(hook)
    return inner.sum(), [value]


# ----------------------------------------------------------------------------------------------------------- functions


class Noted(torch.autograd.Function):
    """A function that saves a tensor, and gives None for what is no tensor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, log: Log) -> Tensor:
        ctx.log = log
        ctx.save_for_backward(value)
        return value.square()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (value,) = ctx.saved_tensors
        ctx.log.append(f"Noted {ctx.needs_input_grad} {torch.is_grad_enabled()}")
        return 2 * value * gradients[0], None


@program
def a_function(log: Log) -> Made:
    value = leaf(3)
    return applied(Noted, value.exp(), log).sum(), [value]


@program
def a_function_and_hooks_on_it(log: Log) -> Made:
    value = leaf(3)
    result = applied(Noted, value.exp(), log)
    result.register_hook(noting(log, "tensor", lambda gradient: gradient * 2))
    result.retain_grad()
    node_of(result).register_prehook(noting(log, "pre"))
    node_of(result).register_hook(noting_results(log, "post"))
    return result.sum(), [value]


class OnlyTheFirst(torch.autograd.Function):
    """A function that gives None for an input that requires grad."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, other: Tensor, log: Log) -> Tensor:
        ctx.log = log
        return value * other

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.log.append("OnlyTheFirst")
        return gradients[0] * 2, None, None


@program
def a_function_that_returns_none(log: Log) -> Made:
    value, other = leaf(3), leaf(3)
    return applied(OnlyTheFirst, value, other.exp(), log).sum() + value.sum(), [value, other]


class Several(torch.autograd.Function):
    """Two outputs and one that is not differentiable; gradients that are not given are None, or zeros."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, materializes: bool, log: Log) -> tuple[Tensor, Tensor, Tensor]:
        ctx.set_materialize_grads(materializes)
        ctx.log = log
        ctx.save_for_backward(value)
        positive = value > 0
        ctx.mark_non_differentiable(positive)
        return value * 3, value.sin(), positive

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, None, None]:
        (value,) = ctx.saved_tensors
        ctx.log.append(f"Several {[one is not None for one in gradients]}")
        total = torch.zeros_like(value)
        for gradient, factor in zip(gradients, (3, value.cos()), strict=False):
            if gradient is not None:
                total = total + gradient * factor
        return total, None, None


@program
def a_function_of_several_outputs(log: Log) -> Made:
    value = leaf(3)
    first, second, positive = applied(Several, value, True, log)
    return (first * second * positive).sum(), [value]


@program
def a_function_of_which_one_output_is_used(log: Log) -> Made:
    value = leaf(3)
    return applied(Several, value, True, log)[1].sum(), [value]


@program
def a_function_that_is_given_no_zeros(log: Log) -> Made:
    value = leaf(3)
    return applied(Several, value, False, log)[1].sum(), [value]


class OnceDifferentiable(torch.autograd.Function):
    """A function whose backward cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, log: Log) -> Tensor:
        ctx.log = log
        return value * 3

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.log.append("OnceDifferentiable")
        return gradients[0] * 3, None


@program
def a_function_that_is_differentiable_once(log: Log) -> Made:
    value = leaf(3)
    return applied(OnceDifferentiable, value.exp(), log).sum(), [value]


class Broadcast(torch.autograd.Function):
    """Its gradient is larger than its input, and of another dtype: the engine reduces and converts it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, log: Log) -> Tensor:
        ctx.log = log
        return value.expand(4, 3) * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.log.append("Broadcast")
        return gradients[0].double() * 2, None


@program
def a_function_whose_gradient_is_brought_to_its_input(log: Log) -> Made:
    value = leaf(3)
    return applied(Broadcast, value, log).square().sum(), [value]


class InPlace(torch.autograd.Function):
    """A function that changes its input."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, log: Log) -> Tensor:
        ctx.log = log
        ctx.mark_dirty(value)
        return value.mul_(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.log.append("InPlace")
        return gradients[0] * 2, None


@program
def a_function_that_changes_a_view(log: Log) -> Made:
    value = leaf(3, 4)
    copy = value.clone()
    applied(InPlace, copy[1], log)
    return copy.square().sum(), [value]


@torch.library.custom_op("backbind_foreign::square", mutates_args=())
def square(value: Tensor, factor: float) -> Tensor:
    """An operator of a library, whose derivative is one of Python."""
    return value * value * factor


def _save_value(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.factor = inputs[1]


def _square_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    (value,) = ctx.saved_tensors
    return 2 * ctx.factor * value * gradient, None


square.register_autograd(_square_backward, setup_context=_save_value)


@program
def a_custom_operator(log: Log) -> Made:
    value = leaf(3)
    return square(value.exp(), 1.5).sum(), [value]


@program
def a_compiled_forward(log: Log) -> Made:
    """Its backward asks whether the graph is kept, and empties what it saved where it is not."""

    def forward(value: Tensor) -> Tensor:
        return (value.sin() * value.cos()).exp().tanh() * value

    value = leaf(3, 4)
    compiled: Callable[[Tensor], Tensor] = torch.compile(forward, backend="aot_eager")
    return compiled(value.exp()).sum(), [value]


@program
def a_function_under_vmap(log: Log) -> Made:
    value = leaf(3, 4)
    batched: Tensor = torch.vmap(Vmapped.apply)(value.exp())
    return batched.sum(), [value]


class Vmapped(torch.autograd.Function):
    """A function that torch makes a batched one of."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return value.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        result: Tensor = gradients[0] * value.cos()
        return result


# ------------------------------------------------------------------------------------------------------- changed views


@program
def one_element_is_set(log: Log) -> Made:
    value = leaf(3)
    copy = value.clone()
    copy[0] = 1.0
    return copy.square().sum(), [value]


@program
def a_column_is_set(log: Log) -> Made:
    value, other = leaf(3, 4), leaf(3)
    copy = value.clone()
    copy[:, 1] = other * 2
    return copy.square().sum(), [value, other]


@program
def views_of_views_are_changed_several_times(log: Log) -> Made:
    value, other = leaf(4, 4), leaf(2)
    copy = value * 1
    copy.t()[1:3, 0].mul_(other)
    copy.diagonal().mul_(3)
    copy.unfold(0, 2, 2)[0].add_(1)
    return copy.square().sum(), [value, other]


@program
def the_real_view_of_complex_numbers_is_changed(log: Log) -> Made:
    value = leaf(3, dtype=torch.complex64)
    copy = value * 1
    torch.view_as_real(copy)[0].mul_(2)
    return copy.abs().sum(), [value]


@program
def the_complex_view_of_real_numbers_is_changed(log: Log) -> Made:
    value = leaf(3, 2)
    copy = value * 1
    torch.view_as_complex(copy)[1:].mul_(2j)
    return copy.square().sum(), [value]


@program
def a_view_of_another_dtype_is_changed(log: Log) -> Made:
    value = leaf(4, dtype=torch.complex64)
    copy = value * 1
    copy.view(torch.float32)[1:3].mul_(3)
    return copy.abs().sum(), [value]


@program
def the_imaginary_part_is_changed(log: Log) -> Made:
    value, other = leaf(3, dtype=torch.complex64), leaf(3)
    copy = value * 1
    copy.imag.copy_(other)
    return copy.abs().sum(), [value, other]


@program
def a_tensor_is_copied_to_another_dtype(log: Log) -> Made:
    value = leaf(3)
    copy = torch.empty(3, dtype=torch.float64).copy_(value)
    return copy.square().sum(), [value]


# ------------------------------------------------------------------------------------------------ code that unpacks


def _noting_unpack(log: Log, entry: str) -> Callable[[Tensor], Tensor]:
    def unpack(packed: Tensor) -> Tensor:
        log.append(entry)
        return packed

    return unpack


@program
def saved_tensors_with_hooks(log: Log) -> Made:
    value, weight = leaf(3, 4), leaf(4, 2)
    with saved_tensors_hooks(torch.clone, _noting_unpack(log, "unpack")):
        return (value @ weight).tanh().square().sum(), [value, weight]


@program
def some_saved_tensors_with_hooks(log: Log) -> Made:
    value, other = leaf(3), leaf(3)
    product = value * other
    raw: Any = product.grad_fn
    raw._raw_saved_self.register_hooks(torch.clone, _noting_unpack(log, "unpack"))
    product.register_hook(noting(log, "product"))
    return product.sum(), [value, other]


@program
def tensors_that_a_function_saved_with_hooks(log: Log) -> Made:
    value = leaf(3)
    with saved_tensors_hooks(torch.clone, _noting_unpack(log, "unpack")):
        return applied(Noted, value.exp(), log).sum(), [value]


@program
def tensors_saved_on_the_cpu(log: Log) -> Made:
    value = leaf(3)
    with save_on_cpu():
        return value.exp().sin().sum(), [value]


@program
def a_checkpoint(log: Log) -> Made:
    """Recomputes once for each backward, whatever number of tensors it unpacks."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))

    def run(value: Tensor) -> Tensor:
        log.append("forward")
        result: Tensor = layers(value)
        return result

    value = leaf(3, 4)
    loss = checkpoint(run, value.exp(), use_reentrant=False).square().sum()
    log.clear()
    return loss, [value, *layers.parameters()]


@program
def a_checkpoint_in_a_checkpoint(log: Log) -> Made:
    def inner(value: Tensor) -> Tensor:
        log.append("inner")
        return value.sin().exp()

    def outer(value: Tensor) -> Tensor:
        log.append("outer")
        result: Tensor = checkpoint(inner, value.tanh(), use_reentrant=False).cos()
        return result

    value = leaf(3)
    loss = checkpoint(outer, value.exp(), use_reentrant=False).square().sum()
    log.clear()
    return loss, [value]


# -------------------------------------------------------------------------------------------------------- jagged sizes


def jagged_leaf() -> Tensor:
    values = [torch.ones(2, 3), torch.full((4, 3), 0.5)]
    return torch.nested.nested_tensor(values, layout=torch.jagged, requires_grad=True)


@program
def jagged_tensors(log: Log) -> Made:
    value = jagged_leaf()
    return (value * 2).sin().values().sum(), [value]


@program
def jagged_tensors_with_hooks(log: Log) -> Made:
    value = jagged_leaf()
    inner = value * 2
    inner.register_hook(noting(log, "inner", lambda gradient: gradient * 3))
    return inner.sin().values().sum(), [value]
