"""The vocabulary: read from headers, against what a formula may really use."""

from __future__ import annotations

import json

import pytest

from codegen.torch_install.cpp_declarations import find_declarations
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.vocabulary import Vocabulary, read_dispatch_keys

HEADER = """
#pragma once
#define MACRO(x) \\
  int hidden() { return 1; }
namespace a::b {
extern const char* kMessage;
constexpr int kLimit = 3;
TORCH_API at::Tensor helper(const at::Tensor& grad, int n = f(1));  // trailing
template <class T, typename U = void>
std::vector<T> templated(T x);
inline int with_body(int x) { int inner_call = other(x); return inner_call; }
C10_DEPRECATED_MESSAGE("use helper") int deprecated();
enum Reduction { None, Mean = 2 };
enum class Kind : int8_t { Red, Green };
using Alias = std::vector<int>;
struct TORCH_API Thing final : public Base<int> {
  Thing(int x) : x_(x) {}
  int method() const { return x_; }
  static bool is_enabled();
  bool operator==(const Thing& other) const;
 private:
  int x_{0};
};
class Forward;
}
"""


def test_declarations_of_a_header() -> None:
    found = find_declarations(HEADER)
    assert found.functions == {"a::b::helper", "a::b::templated", "a::b::with_body", "a::b::deprecated"}
    assert found.values == {
        "a::b::kMessage",
        "a::b::kLimit",
        *("a::b::None", "a::b::Reduction::None", "a::b::Mean", "a::b::Reduction::Mean"),
        *("a::b::Red", "a::b::Kind::Red", "a::b::Green", "a::b::Kind::Green"),
    }
    assert found.types == {"a::b::Reduction", "a::b::Kind", "a::b::Alias", "a::b::Thing"}
    assert found.methods == {"a::b::Thing::Thing", "a::b::Thing::method"}
    assert found.static_methods == {"a::b::Thing::is_enabled"}


@pytest.mark.parametrize(
    "text", ["", "}", "{", "}}}{{{", "namespace {", "int f(", "'", "#", "\\", "template <", "enum {,,}"]
)
def test_broken_headers_are_passed_over(text: str) -> None:
    find_declarations(text)


FUNCTIONS = [
    "mm_mat1_backward",
    "where",
    "at::where",
    "zeros_symint",
    "at::sum_to",
    "std::get",
    "static_cast",
    "sqrt",
]
FUNCTIONS += [
    "GradMode::is_enabled",
    "at::GradMode::is_enabled",
    "std::vector",
    "Tensor",
    "at::Tensor",
    "fmap",
]
FUNCTIONS += [
    "at::native::get_nested_tensor_impl",
    "not_implemented",
    "wrap_opt_if",
    "to_args_sizes",
    "IntArrayRef",
]
UNKNOWN = [
    "mm_mat1_backwards",
    "at::mm_mat1_backward",
    "std::where",
    "exp_symint",
    "method",
    "at::sqrt2",
    "self",
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_known_functions(name: str, vocabulary: Vocabulary) -> None:
    assert vocabulary.is_function(name)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_functions(name: str, vocabulary: Vocabulary) -> None:
    assert not vocabulary.is_function(name)


CONSTANTS = ["M_PI", "at::kJagged", "c10::kJagged", "kCudnnDoubleBackwardMsg", "at::Reduction::None"]
CONSTANTS += ["std::nullopt", "c10::MemoryFormat::Contiguous", "at::MemoryFormat::Contiguous", "at::kFloat"]


@pytest.mark.parametrize("name", CONSTANTS)
def test_known_constants(name: str, vocabulary: Vocabulary) -> None:
    assert vocabulary.is_constant(name)
    assert not vocabulary.is_constant(name + "s")


@pytest.mark.parametrize(
    "name", ["sym_sizes", "has_value", "toDouble", "conj", "options", "roll_symint", "defined"]
)
def test_known_methods(name: str, vocabulary: Vocabulary) -> None:
    assert name in vocabulary.methods


def test_survives_json(vocabulary: Vocabulary) -> None:
    written = json.dumps(vocabulary.to_json(), sort_keys=True)
    assert Vocabulary.from_json(json.loads(written)) == vocabulary


def test_dispatch_keys_are_those_of_torchgen(installed_torch: TorchInstall, vocabulary: Vocabulary) -> None:
    from torchgen.model import AUTOGRAD_KEYS

    assert list(read_dispatch_keys(installed_torch)) == AUTOGRAD_KEYS
    assert vocabulary.dispatch_keys == ("Default", *AUTOGRAD_KEYS)
