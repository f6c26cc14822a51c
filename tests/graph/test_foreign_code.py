"""What has no operator is called by a traced graph: eager's gradients, and a user's code in eager's order, each run."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from tests.cases.values import node_of, noting
from tests.graph import foreign_programs
from tests.graph.foreign_programs import PROGRAMS, Log, Noted, Program, applied, jagged_leaf
from tests.graph.gradients import assert_traces, differences, eager_gradients, leaf, same_bits
from tests.processes import run_python

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


@each_program
def test_programs_equal_eager(program: Program) -> None:
    """A graph calls a user's code as one backward does, each time that it runs; a trace calls none."""
    log: Log = []
    loss, inputs = program(log)
    eager = eager_gradients(loss, inputs)
    called = list(log)
    log.clear()
    graph = backbind.trace(loss, inputs, allow_unused=True)
    assert log == []
    for _ in range(2):
        assert differences(graph(), eager) == {}
        assert log == called
        log.clear()


@each_program
def test_given_gradients_reach_the_hooks(program: Program) -> None:
    loss, inputs = program([])
    given = torch.tensor(-0.5, dtype=loss.dtype)
    eager = torch.autograd.grad(loss, inputs, given.clone(), retain_graph=True, allow_unused=True)
    assert differences(backbind.trace(loss, inputs, allow_unused=True)(given.clone()), eager) == {}


@each_program
def test_programs_equal_eager_under_capture(program: Program) -> None:
    log: Log = []
    loss, inputs = program(log)
    eager = eager_gradients(loss, inputs)
    called = list(log)
    graph = backbind.trace(loss, inputs, allow_unused=True)
    for backend in ("native", "graph"):
        for _ in range(2):
            log.clear()
            with backbind.capture(backend=backend):
                traced = graph()
            assert differences(traced, eager) == {}
            assert log == called


@each_program
def test_a_graph_may_be_run_inside_another_backward(program: Program) -> None:
    """Nodes ask which gradients the backward wants that they are called from: that of the graph, not the outer one."""
    log: Log = []
    loss, inputs = program(log)
    eager = eager_gradients(loss, inputs)
    called = list(log)
    log.clear()
    graph = backbind.trace(loss, inputs, allow_unused=True)
    traced: list[tuple[Tensor | None, ...]] = []
    value = leaf(3)
    inner = value.exp()
    inner.register_hook(lambda gradient: traced.append(graph()))
    torch.autograd.grad(inner.sum(), value)
    assert differences(traced[0], eager) == {}
    assert log == called


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


# torch.compile takes no module with a buffer that is jagged.
COMPILED = [program for program in PROGRAMS if not program.__name__.startswith("jagged")]


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
@pytest.mark.parametrize("program", COMPILED, ids=lambda program: program.__name__)
def test_programs_equal_eager_when_compiled(program: Program) -> None:
    log: Log = []
    loss, inputs = program(log)
    eager = eager_gradients(loss, inputs)
    called = list(log)
    compiled = torch.compile(backbind.trace(loss, inputs, allow_unused=True), backend="aot_eager")
    for _ in range(2):
        log.clear()
        assert differences(compiled(), eager) == {}
        assert log == called


def test_copies_of_saved_tensors_do_as_well() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = (inner * value).sum()
    inner.register_hook(lambda gradient: gradient * 2)
    eager = eager_gradients(loss, [value])
    graph = backbind.trace(loss, [value], copy_saved=True)
    with torch.no_grad():
        value.add_(1)
    assert differences(graph(), eager) == {}


def test_jagged_copies_of_saved_tensors_do_as_well() -> None:
    value = jagged_leaf()
    loss = value.sin().values().sum()
    graph = backbind.trace(loss, [value], copy_saved=True)
    assert differences(graph(), eager_gradients(loss, [value])) == {}


# --------------------------------------------------------------------------------------------------- what a graph holds


def test_the_graph_calls_hooks_in_the_engines_order() -> None:
    loss, inputs = foreign_programs.every_kind_of_hook_on_one_node([])
    graph = backbind.trace(loss, inputs)
    called = [node.name for node in graph.graph.nodes if node.op == "call_function"]
    assert called == [
        "implicit",
        "root",
        "root_validated",
        "sum_backward0",
        "sum_backward0_self",
        "sum_backward0_self_validated",
        "mul_backward0",
        "mul_backward0_self",
        "mul_backward0_self_validated",
        "exp_backward0_tensor_pre_hooks",
        "exp_backward0_gradient",
        "exp_backward0_retain_grad",
        "exp_backward0_gradient_1",
        "exp_backward0_pre_hooks",
        "exp_backward0_gradient_2",
        "exp_backward0_saved_result_unchanged",
        "exp_backward0",
        "exp_backward0_self",
        "exp_backward0_self_validated",
        "exp_backward0_post_hooks",
        "exp_backward0_self_1",
    ]
    node: Any = graph.node_0
    assert (type(node), repr(node)) == (backbind._C.LiveNode, "<live node ExpBackward0>")
    assert (node.name, node.node.name()) == ("ExpBackward0", "ExpBackward0")


def test_what_is_not_on_the_way_is_not_called() -> None:
    value, other = leaf(3), leaf(3)
    log: Log = []
    assert_traces((value.exp() + applied(Noted, other, log)).sum(), [value])
    assert log == []


def test_modes_see_operators_alone() -> None:
    """The backward that a graph runs in shows nowhere."""

    class Dispatched(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self.seen: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    value = leaf(3)
    inner = value.exp()
    plain = backbind.trace(inner.sum(), [value])
    inner.register_hook(lambda gradient: None)
    hooked = backbind.trace(inner.sum(), [value])
    with Dispatched() as expected:
        plain()
    with Dispatched() as actual:
        hooked()
    # The gradient that the hook could change.
    assert actual.seen == ["aten.clone.default", *expected.seen]


def test_retained_gradients_are_kept_at_each_run() -> None:
    value = leaf(3)
    inner = value.exp()
    inner.retain_grad()
    loss = inner.square().sum()
    eager_gradients(loss, [value])
    eager = inner.grad
    graph = backbind.trace(loss, [value])
    for _ in range(2):
        inner.grad = None
        graph()
        assert same_bits(inner.grad, eager)


def test_hooks_behind_an_accumulation_are_not_called() -> None:
    """A trace gives gradients and accumulates none, as torch.autograd.grad, which calls no such hooks either."""
    log: Log = []
    value = leaf(3)
    value.register_post_accumulate_grad_hook(noting(log, "accumulated"))
    loss = value.exp().sum()
    graph = backbind.trace(loss)
    assert differences(graph(), eager_gradients(loss, [value])) == {}
    assert (log, value.grad) == ([], None)
    loss.backward()
    assert log == ["accumulated"]


def test_hooks_are_looked_up_at_each_run_on_nodes_that_had_some() -> None:
    log: Log = []
    value = leaf(3)
    inner = value.exp()
    loss = inner.sum()
    handle = inner.register_hook(noting(log, "first", lambda gradient: gradient * 2))
    graph = backbind.trace(loss, [value])
    inner.register_hook(noting(log, "second", lambda gradient: gradient * 3))
    value.register_hook(noting(log, "on a node that had none"))
    handle.remove()
    (gradient,) = graph()
    assert log == ["second"]
    assert torch.equal(gradient, value.exp() * 3)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(
            "all",
            marks=pytest.mark.xfail(
                reason="such a hook asks the backward which nodes it will run, and finds none of the graph's"
            ),
        ),
        "any",
    ],
)
def test_hooks_on_several_tensors(mode: Any) -> None:
    log: Log = []
    value, other = leaf(3), leaf(3)
    first, second = value.exp(), other.exp()
    register_multi_grad_hook((first, second), lambda gradients: log.append(mode), mode=mode)
    loss = (first * second).sum()
    eager_gradients(loss, [value, other])
    assert log == [mode]
    graph = backbind.trace(loss, [value, other])
    for _ in range(2):
        log.clear()
        graph()
        assert log == [mode]


def nodes_seen_by_a_hook(*runs: str) -> list[str]:
    """In a fresh process: where torch keeps the current node is looked up once."""
    lines = [
        "import torch, backbind",
        "value = torch.ones(3, requires_grad=True)",
        "inner = value.exp()",
        "inner.register_hook(lambda _: print(torch._C._current_autograd_node().name()))",
        "loss = inner.sum()",
        "graph = backbind.trace(loss, [value])",
        *runs,
    ]
    return run_python("-c", "\n".join(lines), env={"PYTHONPATH": str(RUNTIME)}).stdout.split()


def test_a_hook_that_a_graph_calls_sees_its_node() -> None:
    assert nodes_seen_by_a_hook("graph()") == ["ExpBackward0"]


def test_a_captured_hook_sees_its_node_after_a_graph_has_run() -> None:
    captured = ("with backbind.capture():", "    loss.backward()")
    assert nodes_seen_by_a_hook("graph()", *captured)[1:] == ["ExpBackward0"]


# -------------------------------------------------------------------------------------------- the end of the live graph


@pytest.mark.parametrize(
    "program",
    [
        foreign_programs.a_function,
        foreign_programs.a_column_is_set,
        foreign_programs.a_custom_operator,
        foreign_programs.saved_tensors_with_hooks,
    ],
    ids=lambda program: program.__name__,
)
def test_live_nodes_that_let_go_of_what_they_saved_raise_eagers_error(program: Program) -> None:
    loss, inputs = program([])
    graph = backbind.trace(loss, inputs)
    loss.backward()
    assert raised_by(graph) == raised_by(loss.backward)


def test_hooks_need_nothing_that_the_live_graph_saved() -> None:
    loss, inputs = foreign_programs.every_kind_of_hook_on_one_node([])
    eager = eager_gradients(loss, inputs)
    graph = backbind.trace(loss, inputs)
    loss.backward()
    assert differences(graph(), eager) == {}


def test_a_freed_graph_raises_eagers_error() -> None:
    value = leaf(3)
    loss = value.exp().sum()
    loss.backward()
    assert raised_by(lambda: backbind.trace(loss)) == raised_by(loss.backward)


def test_a_tensor_changed_in_place_raises_eagers_error() -> None:
    value = leaf(3)
    inner = value.exp()
    loss = inner.sum()
    with torch.no_grad():
        inner.add_(1)
    assert raised_by(lambda: backbind.trace(loss)) == raised_by(lambda: loss.backward(retain_graph=True))


@pytest.mark.parametrize("copy_saved", [False, True])
def test_what_a_function_saved_and_was_changed_in_place_raises_eagers_error(copy_saved: bool) -> None:
    """Also where the graph copied the rest: it is the function that saved it."""
    value = leaf(3)
    loss = applied(Noted, value, []).sum()
    graph = backbind.trace(loss, [value], copy_saved=copy_saved)
    with torch.no_grad():
        value.add_(1)
    assert raised_by(graph) == raised_by(lambda: loss.backward(retain_graph=True))


def test_a_saved_tensor_that_a_hook_changes_before_its_turn_is_an_error() -> None:
    value, factor = leaf(3), torch.ones(3)
    inner = (value * factor).exp()
    inner.register_hook(noting([], "changes what the product saved", lambda gradient: factor.mul_(2)))
    loss = inner.sum()
    graph = backbind.trace(loss, [value])
    assert raised_by(graph) == (
        RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3]], which MulBackward0 saved (buffer 'mul_backward0_saved_other' of this graph), is at "
        "version 1; expected version 0 instead. Call the graph before the tensor is changed, trace the next forward "
        "anew, or use backbind.trace(..., copy_saved=True), which keeps a copy of what was saved.",
    )
    assert raised_by(loss.backward) == (
        RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3]] is at version 2; expected version 0 instead. Hint: enable anomaly detection to find "
        "the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False).",
    )


def test_a_saved_tensor_that_a_hook_changes_after_its_turn_is_none() -> None:
    """An optimizer whose steps are hooks changes a parameter when its gradient is there."""

    def made() -> tuple[Tensor, Tensor]:
        weight = leaf(3)

        def step(gradient: Tensor) -> None:
            with torch.no_grad():
                weight.sub_(gradient)

        weight.register_hook(step)
        return (weight * weight).sum(), weight

    loss, weight = made()
    (eager,) = torch.autograd.grad(loss, weight)
    loss, again = made()
    (traced,) = backbind.trace(loss, [again])()
    assert same_bits(traced, eager)
    assert same_bits(again.detach(), weight.detach())


# --------------------------------------------------------------------------------------------------------------- errors


def raised_by(call: Callable[[], object]) -> tuple[type[BaseException], str]:
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value), str(caught.value)


class HookError(Exception):
    """A user's."""


class Switch:
    """What raises while it is on."""

    def __init__(self) -> None:
        self.is_on = False

    def hook(self, *_: object) -> None:
        if self.is_on:
            raise HookError("lost")

    def unpack(self, packed: Tensor) -> Tensor:
        self.hook()
        return packed

    def loss(self, place: str) -> tuple[Tensor, Tensor]:
        value = leaf(3)
        inner = value.exp()
        match place:
            case "tensor hook":
                inner.register_hook(self.hook)
            case "hook on an input":
                value.register_hook(self.hook)
            case "node pre-hook":
                node_of(inner).register_prehook(self.hook)
            case "node post-hook":
                node_of(inner).register_hook(self.hook)
            case "final callback":
                engine: Any = torch.autograd.Variable._execution_engine
                inner.register_hook(lambda gradient: engine.queue_callback(self.hook))
            case "function":
                inner = applied(Raising, inner, self)
            case "unpack hook":
                with saved_tensors_hooks(torch.clone, self.unpack):
                    inner = inner.sin()
            case "checkpoint":
                inner = checkpoint(self._forward, inner, use_reentrant=False)
        return inner.sin().sum(), value

    def _forward(self, value: Tensor) -> Tensor:
        self.hook()
        return value.tanh()


class Raising(torch.autograd.Function):
    """A function that raises while its switch is on."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, switch: Switch) -> Tensor:
        ctx.switch = switch
        return value * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        ctx.switch.hook()
        return gradients[0] * 2, None


@pytest.mark.parametrize(
    "place",
    [
        "tensor hook",
        "hook on an input",
        "node pre-hook",
        "node post-hook",
        "final callback",
        "function",
        "unpack hook",
        "checkpoint",
    ],
)
def test_an_error_of_the_users_code_is_the_users_and_the_graph_goes_on(place: str) -> None:
    switch = Switch()
    loss, value = switch.loss(place)
    graph = backbind.trace(loss, [value])
    for _ in range(2):
        switch.is_on = True
        assert raised_by(graph) == (HookError, "lost") == raised_by(lambda: eager_gradients(loss, [value]))
        switch.is_on = False
        assert differences(graph(), eager_gradients(loss, [value])) == {}


def a_tensor_hook_that_returns(value: Tensor, result: Any) -> Tensor:
    inner = value.exp()
    inner.register_hook(lambda gradient: result)
    return inner


def a_pre_hook_that_returns(value: Tensor, result: Any) -> Tensor:
    inner = value.exp()
    node_of(inner).register_prehook(lambda gradients: result)
    return inner


def a_post_hook_that_returns(value: Tensor, result: Any) -> Tensor:
    inner = value.exp()
    node_of(inner).register_hook(lambda results, gradients: result)
    return inner


def a_function_that_returns(value: Tensor, result: Any) -> Tensor:
    returned: Tensor = applied(Returning, value, result)
    return returned


def an_unpack_hook_that_returns(value: Tensor, result: Any) -> Tensor:
    with saved_tensors_hooks(lambda tensor: 0, lambda packed: result):
        return value.exp()


class Returning(torch.autograd.Function):
    """A function whose backward returns what it was given."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, result: object) -> Tensor:
        ctx.result = result
        return value * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return ctx.result


@pytest.mark.parametrize(
    ("place", "result"),
    [
        (a_tensor_hook_that_returns, torch.ones(2)),
        (a_tensor_hook_that_returns, torch.ones(3, dtype=torch.float64)),
        (a_tensor_hook_that_returns, "text"),
        (a_pre_hook_that_returns, (torch.ones(2),)),
        (a_pre_hook_that_returns, (torch.ones(3), torch.ones(3))),
        (a_pre_hook_that_returns, ("text",)),
        (a_post_hook_that_returns, (torch.ones(2),)),
        (a_post_hook_that_returns, (torch.ones(3), torch.ones(3))),
        (a_post_hook_that_returns, "text"),
        (a_function_that_returns, (torch.ones(2), None)),
        (a_function_that_returns, (torch.ones(3), torch.ones(3))),
        (a_function_that_returns, torch.ones(3)),
        (a_function_that_returns, (torch.ones(3), None, torch.ones(3))),
        (a_function_that_returns, ("text", None)),
        (an_unpack_hook_that_returns, "text"),
    ],
)
def test_what_no_gradient_may_be_is_eagers_error(place: Callable[[Tensor, Any], Tensor], result: Any) -> None:
    value = leaf(3)
    loss = place(value, result).sum()
    graph = backbind.trace(loss, [value])
    assert raised_by(graph) == raised_by(lambda: eager_gradients(loss, [value]))


def test_an_input_that_turns_out_to_have_no_gradient_is_refused_as_eager_does() -> None:
    value = leaf(3)
    loss = applied(foreign_programs.NoGradient, value).sum()
    graph = backbind.trace(loss, [value])
    assert raised_by(graph) == raised_by(lambda: torch.autograd.grad(loss, value, retain_graph=True))


# -------------------------------------------------------------------------------------------------------------- copying


def node_error(name: str) -> str:
    return f"the live node {name} has hooks or code of this process, and cannot be copied or stored"


@pytest.mark.parametrize("store", [copy.deepcopy, pickle.dumps], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (foreign_programs.node_pre_hooks, node_error("UnbindBackward0")),
        (foreign_programs.a_function, node_error("NotedBackward")),
        (foreign_programs.one_element_is_set, node_error("torch::autograd::CopySlices")),
        (foreign_programs.a_tensor_is_copied_to_another_dtype, node_error("torch::autograd::CopyBackwards")),
        (
            foreign_programs.a_custom_operator,
            node_error("GeneratedBackwardFor_backbind_foreign_square_defaultBackward"),
        ),
        (foreign_programs.tensors_saved_on_the_cpu, node_error("SinBackward0")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_graph_that_calls_live_nodes_cannot_be_stored(
    program: Program, message: str, store: Callable[[object], object]
) -> None:
    loss, inputs = program([])
    graph = backbind.trace(loss, inputs)
    assert raised_by(lambda: store(graph)) == (TypeError, message)
    assert differences(graph(), eager_gradients(loss, inputs)) == {}


@pytest.mark.parametrize("store", [copy.deepcopy, pickle.dumps], ids=["deepcopy", "pickle"])
def test_a_graph_over_jagged_tensors_cannot_be_stored(store: Callable[[object], object]) -> None:
    value = jagged_leaf()
    graph = backbind.trace(value.values().sum(), [value])
    assert raised_by(lambda: store(graph)) == (
        TypeError,
        f"the size {value.shape[1]} is a symbol that belongs to jagged tensors of this process, and cannot be copied "
        "or stored",
    )


@each_program
def test_a_shallow_copy_calls_the_same_nodes(program: Program) -> None:
    loss, inputs = program([])
    graph = backbind.trace(loss, inputs, allow_unused=True)
    assert differences(copy.copy(graph)(), eager_gradients(loss, inputs)) == {}


# ---------------------------------------------------------------------------------------------------------- checkpoints


def test_parameters_inside_a_reentrant_checkpoint_are_not_used() -> None:
    layer, value = nn.Linear(4, 4), leaf(2, 4)
    loss = checkpoint(layer, value, use_reentrant=True).sum()
    parameters = list(layer.parameters())
    eager = raised_by(lambda: torch.autograd.grad(loss, parameters, retain_graph=True))
    assert raised_by(lambda: backbind.trace(loss, dict(layer.named_parameters()))) == eager


@pytest.mark.parametrize("names_inputs", [False, True])
def test_a_reentrant_checkpoint_accumulates_into_what_lies_inside(names_inputs: bool) -> None:
    """Its function runs a backward of its own, which knows nothing of the graph. Where torch.autograd.grad refuses it,
    since nobody asked for these gradients, a graph does as loss.backward() does."""
    torch.manual_seed(0)
    layers, value = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), leaf(2, 4)
    loss = checkpoint(layers, value.exp(), use_reentrant=True).square().sum()
    loss.backward(retain_graph=True)
    inside = [one.grad for one in layers.parameters()]
    outside = value.grad
    graph = backbind.trace(loss, [value] if names_inputs else None)
    for _ in range(2):
        value.grad = None
        layers.zero_grad()
        assert differences(graph(), [outside]) == {}
        assert differences([one.grad for one in layers.parameters()], inside) == {}
        assert value.grad is None
