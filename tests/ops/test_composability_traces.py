"""Operators in the hands of tracers: make_fx, fx.symbolic_trace, fake tensors, torch.export, and saved graphs."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import backbind
import pytest
import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from tests.ops.call_module import arguments_of, call_module, defined_results, inputs_of, targets_of
from tests.ops.node_set import NODE_SET, Made, NodeCase, all_same_bits

SIZE = 6
"""No other size in the shapes of the node set, so that a trace with symbols does not take two sizes for one."""
OTHER_SIZE = 9

FACES: tuple[Callable[[Made], Callable[..., Any]], ...] = (
    lambda made: made.operator.overload,
    lambda made: made.operator,
)
"""The two ways to call an operator."""
FACE_NAMES = ("torch.ops", "backbind.ops")

NO_SYMBOLIC_SIZES = {"UpsampleBilinear2DBackward0": torch.ops.aten.upsample_bilinear2d_backward}
"""Nodes whose formula is an operator that torch itself cannot trace with symbolic sizes."""
NO_SYMBOLIC_SIZES_MESSAGE = "Expected IntList but got GenericList"


ANOTHER_WAY = {"ProdBackward0"}
"""Nodes for which torch takes another way when it may not look at values: it rounds differently."""


def assert_result(case: NodeCase, traced: list[Tensor | None], size: int = SIZE) -> None:
    """What a trace computes is what the operator computes."""
    expected = case.make(size).call()
    if case.node in ANOTHER_WAY:
        torch.testing.assert_close(traced, expected, rtol=1e-12, atol=1e-12)
    else:
        assert all_same_bits(traced, expected)


@pytest.mark.parametrize("face", FACES, ids=FACE_NAMES)
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_make_fx(case: NodeCase, face: Callable[[Made], Callable[..., Any]]) -> None:
    """A trace with real values goes to the bottom, and its graph gives the same again."""
    made = case.make(SIZE)
    inputs = inputs_of(made)
    traced = make_fx(call_module(made, face(made)))(*inputs)
    assert not [target for target in targets_of(traced) if "backbind" in str(target)]
    assert_result(case, traced(*inputs))


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_make_fx_with_symbolic_sizes(case: NodeCase) -> None:
    """What is traced at one size is right at another, and both faces of an operator trace to the same graph."""
    made, other = case.make(SIZE), case.make(OTHER_SIZE)
    module = call_module(made)

    def trace(target: Callable[..., Any]) -> fx.GraphModule:
        return make_fx(call_module(made, target), tracing_mode="symbolic")(*inputs_of(made))

    if case.node in NO_SYMBOLIC_SIZES:
        with pytest.raises(RuntimeError, match=NO_SYMBOLIC_SIZES_MESSAGE):
            trace(made.operator.overload)
        return
    traced = trace(made.operator.overload)
    assert trace(made.operator).code == traced.code
    assert_result(case, traced(*inputs_of(made)))
    if module.code == call_module(other).code:
        assert_result(case, traced(*inputs_of(other)), OTHER_SIZE)
    else:
        # Sizes that the schema has as plain integers are constants of the trace, as everywhere in torch.
        assert case.node in SIZES_ARE_CONSTANTS


SIZES_ARE_CONSTANTS = {"BlockDiagBackward0"}


@pytest.mark.parametrize(("node", "formula"), NO_SYMBOLIC_SIZES.items())
def test_what_cannot_be_traced_cannot_be_traced_without_us(node: str, formula: Callable[..., Any]) -> None:
    assert backbind.ops.get(node).formulas[0].text.startswith(str(formula).removeprefix("aten."))
    grad, image = torch.randn(6, 1, 4, 4), torch.randn(6, 1, 2, 2)
    with pytest.raises(RuntimeError, match=NO_SYMBOLIC_SIZES_MESSAGE):
        make_fx(lambda grad, image: formula(grad, [4, 4], image.shape, False), tracing_mode="symbolic")(
            grad, image
        )


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_symbolic_trace_keeps_the_operator(case: NodeCase) -> None:
    """fx.symbolic_trace records a call of either face as one call of the overload."""
    made = case.make(SIZE)
    for face in FACES:
        traced = fx.symbolic_trace(call_module(made, face(made)))
        assert targets_of(traced) == [made.operator.overload]
        assert_result(case, traced(*inputs_of(made)))


def test_symbolic_trace_with_proxies_for_whole_arguments() -> None:
    """A proxy may stand for any argument: a list of gradients, the flags, a dtype."""
    made = next(case for case in NODE_SET if case.node == "MulBackward0").make()
    arguments = [made.grads, *made.packed]
    traced = fx.symbolic_trace(
        lambda grads, flags, left, left_dtype, right, right_dtype: made.operator(
            grads, flags, left, left_dtype, right, right_dtype
        )
    )
    assert targets_of(traced) == [made.operator.overload]
    assert all_same_bits(traced(*arguments), made.call())


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_a_graph_of_operators_pickles(case: NodeCase) -> None:
    """Graphs that call either face survive pickle; what is loaded calls the overload."""
    made = case.make(SIZE)
    for face in FACES:
        loaded = pickle.loads(pickle.dumps(call_module(made, face(made))))
        assert targets_of(loaded) == [made.operator.overload]
        assert_result(case, loaded(*inputs_of(made)))


def _metadata(results: list[Tensor | None]) -> list[object]:
    return [
        None if one is None else (one.shape, one.stride(), one.dtype, one.layout, one.device)
        for one in results
    ]


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_fake_tensors_have_the_metadata_of_the_results(case: NodeCase) -> None:
    """Shape, strides, dtype, layout and device are those of the real results, under the mode."""
    made = case.make(SIZE)
    expected = _metadata(call_module(made)(*inputs_of(made)))
    for face in FACES:
        module = call_module(made, face(made))
        mode = FakeTensorMode()
        fakes = [mode.from_tensor(one) if isinstance(one, Tensor) else one for one in inputs_of(made)]
        with mode:
            assert _metadata(module(*fakes)) == expected


def test_a_fake_tensor_is_recognised_outside_its_mode() -> None:
    made = next(case for case in NODE_SET if case.node == "MulBackward0").make()
    mode = FakeTensorMode()
    fakes = [mode.from_tensor(one) for one in inputs_of(made) if isinstance(one, Tensor)]
    assert _metadata(call_module(made, made.operator)(*fakes)) == _metadata(
        call_module(made)(*inputs_of(made))
    )


@pytest.mark.parametrize("strict", [False, True], ids=["nonstrict", "strict"])
@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_export_of_a_module_that_calls_the_operator(case: NodeCase, strict: bool) -> None:
    """An exported program has the overload itself, whichever face the module called."""
    made = case.make(SIZE)
    inputs = tuple(inputs_of(made))
    face = made.operator if strict else made.operator.overload
    program = torch.export.export(call_module(made, face), inputs, strict=strict)
    assert targets_of(program.graph_module) == [made.operator.overload]
    assert_result(case, program.module()(*inputs))


@pytest.mark.parametrize("node", ["MulBackward0", "SliceBackward0", "ForeachNegBackward0"])
def test_an_exported_program_saves_and_decomposes(node: str) -> None:
    made = next(case for case in NODE_SET if case.node == node).make(SIZE)
    inputs = tuple(inputs_of(made))
    module = call_module(made, made.operator, defined_results(made))
    program = torch.export.export(module, inputs)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert targets_of(loaded.graph_module) == [made.operator.overload]
    assert all_same_bits(loaded.module()(*inputs), module(*inputs))
    decomposed = loaded.run_decompositions()
    assert not [target for target in targets_of(decomposed.graph_module) if "backbind" in str(target)]
    assert all_same_bits(decomposed.module()(*inputs), module(*inputs))


def test_the_modules_of_these_tests_take_symbolic_integers() -> None:
    """At least one node per kind of symbolic integer has them as inputs of its module."""
    kinds = {
        argument.schema_type
        for case in NODE_SET
        for argument in arguments_of(case.make())
        if any(isinstance(one, int) for one in argument.inputs())
    }
    assert kinds >= {"SymInt", "SymInt[]", "SymInt?"}
