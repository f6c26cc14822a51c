"""Whatever a file holds, judging it gives messages with places and never raises."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen.parse.report import Report
from codegen.parse.yaml_tree import decode_source
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import read_operators

from ..conftest import CASES, Judge

# The fixtures of these tests are facts of the installed torch and never change.
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

FORMULAS = [
    "grad",
    "grads[0]",
    "grads[7]",
    "self.sizes()",
    "f(",
    "auto_linear",
    "auto_element_wise",
    "non_differentiable",
]
FORMULAS += [
    "self_t * self_p",
    "grad_input_mask[9]",
    "[](int i){return i;}",
    "",
    " ",
    "a ? b",
    "std::get<0>(x)",
    "\x00",
]
SCHEMAS = [
    "exp(Tensor self) -> Tensor",
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    "tanh",
    "",
    "f(",
    "-> ()",
]
SCHEMAS += ["aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)"]
SCHEMAS += ["_assert_async(Tensor self) -> ()", "exp_(Tensor(a!) self) -> Tensor(a!)"]
KEYS = [
    "name",
    "dispatch",
    "output_differentiability",
    "self",
    "other",
    "result",
    "self, other",
    ",",
    "min",
    "Default",
]
KEYS += ["result0", "AutogradCUDA", "dim", "<<", "nmae"]
SCALARS = st.sampled_from([*FORMULAS, *SCHEMAS, True, False, 0, 1.5, None]) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(SCHEMAS)}, optional=dict.fromkeys(KEYS[1:], VALUES))
    | VALUES,
    max_size=3,
)


FUNCTIONS = st.sampled_from(
    [*SCHEMAS, "f_(Tensor(a!) x)->Tensor(a!)", "f(Tensor(a!|b) x) -> ()", "f(Tensor(a!) x) -> ()"]
)
OPERATORS = st.lists(
    st.fixed_dictionaries(
        {"func": FUNCTIONS | VALUES},
        optional={
            "variants": VALUES,
            "autogen": st.sampled_from(["g", "g.out", "f, g.functional", "("]) | VALUES,
        },
    ),
    max_size=3,
)


def must_render(report: Report) -> None:
    text = report.render()
    assert text.endswith(f"{report.count_line()}\n") or not report.diagnostics
    for item in report.diagnostics:
        assert 0 <= item.span.start <= item.span.end <= len(item.span.file.text) + 1
        assert item.message
        assert not item.message.endswith(".")


@FUZZ
@given(st.binary(max_size=80))
def test_any_bytes(judge: Judge, content: bytes) -> None:
    must_render(judge(content, "f"))


@FUZZ
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_any_text(judge: Judge, text: str) -> None:
    must_render(judge(text.encode(), "f"))


@FUZZ
@given(st.lists(st.sampled_from([*KEYS, ": ", "- ", "\n", "  ", "{", "}", "[", "]", "&a", "*a", "!t", '"', "'", "|\n", "#", "---\n"]), max_size=30))  # fmt: skip  # noqa: E501
def test_any_words_of_yaml(judge: Judge, words: list[str]) -> None:
    must_render(judge("".join(words).encode(), "f"))


@FUZZ
@given(ENTRIES, st.sampled_from([None, "'", '"', "|", ">"]))
def test_any_values(judge: Judge, value: Any, style: str | None) -> None:
    must_render(judge(yaml.safe_dump(value, default_style=style, width=30).encode(), "f"))


@pytest.fixture(scope="module")
def stock_entries(installed_torch: TorchInstall) -> list[bytes]:
    text = installed_torch.derivatives_yaml.read_bytes()
    start = text.index(b"\n- name:") + 1
    return [entry + b"\n" for entry in text[start:].split(b"\n\n") if entry.startswith(b"- name:")]


@FUZZ
@given(st.data())
def test_mutated_stock_entries(judge: Judge, stock_entries: list[bytes], data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(stock_entries)))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content)))
        change = data.draw(
            st.sampled_from([b"", b"(", b")", b"x", b"'", b'"', b": ", b"\n", b",", b"[", b"]", b"-", b" "])
        )
        length = data.draw(st.integers(0, 3))
        content[position : position + length] = change
    must_render(judge(bytes(content), "f"))


@FUZZ
@given(st.data())
def test_mixed_parts_of_stock_entries(judge: Judge, stock_entries: list[bytes], data: st.DataObject) -> None:
    lines = [
        line
        for entry in data.draw(st.lists(st.sampled_from(stock_entries), min_size=2, max_size=4))
        for line in entry.splitlines()
    ]
    must_render(judge(b"\n".join(data.draw(st.permutations(lines))), "f"))


@FUZZ
@given(st.binary(max_size=60) | OPERATORS.map(lambda value: yaml.safe_dump(value).encode()))
def test_any_file_of_operators(content: bytes) -> None:
    report = Report()
    source = decode_source(content, "f", report)
    if source is not None:
        read_operators(source, report)
    must_render(report)


@pytest.mark.parametrize("name", ["c6.yaml", "c3.yaml"])
def test_every_prefix_of_a_case(name: str, judge: Judge) -> None:
    content = (CASES / name).read_bytes()
    for end in range(len(content)):
        must_render(judge(content[:end], name))
