"""The model against the node structs of the header: equal for the real torch, and each kind of difference is
named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from codegen.model.header_check import HeaderMismatchError, differences, expected_fields, require_equal
from codegen.model.node import Model, NodeSpec
from codegen.torch_install.cache import Cache
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.node_structs import (
    HeaderUnreadableError,
    LibclangMissingError,
    NodeStruct,
    NodeStructsRun,
    plain_type,
    read_node_structs,
)

Structs = dict[str, NodeStruct]


@pytest.fixture(scope="session")
def structs(installed_torch: TorchInstall, kept_facts: Cache) -> Structs:
    """The node structs of the installed torch."""
    with NodeStructsRun(installed_torch, kept_facts) as run:
        return run.result()


@pytest.fixture(scope="session")
def small(model: Model) -> Model:
    """Three nodes that have between them every kind of field."""
    names = ("BatchNormWithUpdateBackward0", "ForeachPowBackward1", "MulBackward0")
    return replace(model, nodes=tuple(node for node in model.nodes if node.name in names))


def struct_of(node: NodeSpec) -> NodeStruct:
    return NodeStruct("TraceableFunction", expected_fields(node))


def test_every_node_of_the_installed_torch_is_as_in_its_header(model: Model, structs: Structs) -> None:
    assert list(differences(model, structs)) == []
    assert len(structs) == 711
    assert sum(struct.base == "Node" for struct in structs.values()) == 37
    assert sum("retain_variables" in struct.fields for struct in structs.values()) == 5


def test_expected_fields_have_flags_and_sizes_in_their_places(small: Model) -> None:
    pow_fields = {
        "exponent": "std::vector<at::Scalar>",
        "exponent_released_": "bool",
        "self_": "std::vector<SavedVariable>",
        "self_released_": "bool",
        "self_size_": "size_t",
    }
    by_name = {node.name: list(expected_fields(node).items()) for node in small.nodes}
    assert by_name["ForeachPowBackward1"] == list(pow_fields.items())
    assert by_name["BatchNormWithUpdateBackward0"][0] == ("retain_variables", "bool")


def rename(fields: Mapping[str, str]) -> dict[str, str]:
    return {("othre_" if name == "other_" else name): kind for name, kind in fields.items()}


def retype(fields: Mapping[str, str]) -> dict[str, str]:
    return {**fields, "other_scalar_type": "at::Layout"}


def add(fields: Mapping[str, str]) -> dict[str, str]:
    return {**fields, "extra": "int64_t"}


def drop(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for name, kind in fields.items() if name != "self_"}


def reorder(fields: Mapping[str, str]) -> dict[str, str]:
    return dict(reversed(list(fields.items())))


@pytest.mark.parametrize(
    "change, wanted",
    [
        (
            rename,
            [
                "MulBackward0.othre_: the header says 'SavedVariable', the model has no such field",
                "MulBackward0.other_: the header has no such field, the model says 'SavedVariable'",
            ],
        ),
        (
            retype,
            ["MulBackward0.other_scalar_type: the header says 'at::Layout', the model says 'at::ScalarType'"],
        ),
        (add, ["MulBackward0.extra: the header says 'int64_t', the model has no such field"]),
        (drop, ["MulBackward0.self_: the header has no such field, the model says 'SavedVariable'"]),
        (
            reorder,
            [
                "MulBackward0: the header orders its fields self_scalar_type, self_, other_scalar_type, "
                "other_; the model other_, other_scalar_type, self_, self_scalar_type"
            ],
        ),
    ],
    ids=["renamed", "retyped", "added", "dropped", "reordered"],
)
def test_each_difference_names_both_sides(
    small: Model, change: Callable[[Mapping[str, str]], dict[str, str]], wanted: list[str]
) -> None:
    found = {node.name: struct_of(node) for node in small.nodes}
    found["MulBackward0"] = NodeStruct("TraceableFunction", change(found["MulBackward0"].fields))
    assert list(differences(small, found)) == wanted


def test_all_differences_come_in_one_message(small: Model) -> None:
    found = {node.name: struct_of(node) for node in small.nodes}
    del found["MulBackward0"]
    found["NewBackward0"] = NodeStruct("Node", {})
    found["ForeachPowBackward1"] = NodeStruct("CppNode", found["ForeachPowBackward1"].fields)
    line = next(node.line for node in small.nodes if node.name == "MulBackward0")
    with pytest.raises(HeaderMismatchError) as error:
        require_equal(small, found, "Functions.h")
    assert str(error.value) == (
        "3 differences between derivatives.yaml and Functions.h of torch 2.13.0:\n"
        "  ForeachPowBackward1: the header says that its base is 'CppNode', the model expects "
        "'TraceableFunction' or 'Node'\n"
        f"  MulBackward0: the header has no such struct, the model makes it from 'mul.Tensor' "
        f"(derivatives.yaml:{line})\n"
        "  NewBackward0: the header has this struct, the model has no such node\n"
        "hint: torch was compiled with the header. An edited formula may read only what its node saved; "
        "where none was edited the model is wrong: types stand in codegen/model/saved_types.py, names in "
        "codegen/names.py"
    )


@pytest.mark.parametrize(
    "spelling, plain",
    [
        ("bool", "bool"),
        ("torch::autograd::SavedVariable", "SavedVariable"),
        ("::std::optional<c10::SymInt>", "std::optional<c10::SymInt>"),
        ("std::vector< ::std::vector<int64_t> >", "std::vector<std::vector<int64_t>>"),
        ("torch::autograd::generated::TypeAndSize", "TypeAndSize"),
        ("::c10::OptionalArray<int64_t>", "c10::OptionalArray<int64_t>"),
    ],
)
def test_types_are_written_alike(spelling: str, plain: str) -> None:
    assert plain_type(spelling) == plain


HEADER = """
namespace torch { namespace autograd { struct Node {}; struct TraceableFunction : Node {}; } }
namespace other { struct Decoy : torch::autograd::Node { int a; }; }
namespace torch { namespace autograd { namespace generated {
struct Forward;
struct Plain { int no_node; };
struct MulBackward0 : public TraceableFunction { int alpha; bool* flag = nullptr; void apply() { return; } };
}}}
namespace torch::autograd::generated { struct ViewBackward0 : public Node { static int none; }; }
"""


def test_only_node_structs_of_the_namespace_are_read(tmp_path: Path) -> None:
    header = tmp_path / "Functions.h"
    header.write_text(HEADER)
    assert read_node_structs(header, header.parent) == {
        "MulBackward0": NodeStruct("TraceableFunction", {"alpha": "int", "flag": "bool*"}),
        "ViewBackward0": NodeStruct("Node", {}),
    }


def test_a_header_that_is_no_cpp_is_an_error(tmp_path: Path) -> None:
    header = tmp_path / "Functions.h"
    header.write_text("struct {\n  Missing x;\n};\n")
    with pytest.raises(HeaderUnreadableError) as error:
        read_node_structs(header, tmp_path)
    assert str(error.value) == "libclang cannot read Functions.h: Functions.h:2: unknown type name 'Missing'"


def test_without_libclang_the_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clang.cindex", None)
    with pytest.raises(LibclangMissingError) as error:
        read_node_structs(tmp_path / "Functions.h", tmp_path)
    assert str(error.value) == "the Python package 'libclang' is not installed"


def test_without_a_compiler_the_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LibclangMissingError) as error:
        read_node_structs(tmp_path / "Functions.h", tmp_path)
    assert str(error.value) == (
        "libclang needs a compiler's own headers, and none of 'g++', 'c++', 'clang++' is installed"
    )
