"""YAML with places: values as pyyaml reads them, each character where it is written."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codegen.parse.report import Report
from codegen.parse.span import SourceFile
from codegen.parse.yaml_source import parse_entries
from codegen.parse.yaml_tree import MappingNode, Node, ScalarNode, decode_source, parse_tree
from codegen.torch_install.locate import TorchInstall


def plain(node: Node | None) -> Any:
    """The tree without places; every scalar as text."""
    if isinstance(node, ScalarNode):
        return node.text
    if isinstance(node, MappingNode):
        return {key.text: plain(value) for key, value in node.pairs}
    return None if node is None else [plain(item) for item in node.items]


def tree(text: str) -> tuple[Node | None, Report]:
    report = Report()
    return parse_tree(SourceFile("f", text), report), report


TEXT = st.text(alphabet="abc \n'\"\\:#,é数\t", max_size=20)
VALUES = st.recursive(
    TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)


@given(VALUES, st.sampled_from(["'", '"', "|", ">", None]), st.integers(10, 60), st.booleans())
def test_any_dumped_value_is_read_back(value: Any, style: str | None, width: int, flow: bool) -> None:
    text = yaml.safe_dump(
        value, default_style=style, width=width, allow_unicode=True, default_flow_style=flow
    )
    node, report = tree(text)
    assert report.diagnostics == []
    assert plain(node) == yaml.load(text, Loader=yaml.BaseLoader)


@given(
    st.text(alphabet="abcdef \n'\"\\é", min_size=1, max_size=40), st.sampled_from(["'", '"', "|", ">", None])
)
def test_each_word_is_found_where_it_is_written(value: str, style: str | None) -> None:
    text = yaml.safe_dump({"k": value}, default_style=style, width=12, allow_unicode=True)
    node, _ = tree(text)
    assert isinstance(node, MappingNode)
    scalar = node.pairs[0][1]
    assert isinstance(scalar, ScalarNode)
    for position, character in enumerate(scalar.text):
        part = scalar.source.part(position, position + 1)
        assert 0 <= part.start < part.end <= len(text)
        if character.isalpha() and not (style == '"' or text[part.start] == "\\"):
            assert part.text == character


ESCAPES = [
    pytest.param(r'"a\x62c"', {"a": "a", "b": "\\", "c": "c"}, id="hexadecimal"),
    pytest.param(r'"a\u00e9c"', {"a": "a", "é": "\\", "c": "c"}, id="unicode"),
    pytest.param(r'"a\"c"', {"a": "a", '"': "\\", "c": "c"}, id="quote"),
    pytest.param('"a\\\n   c"', {"a": "a", "c": "c"}, id="continued_line"),
    pytest.param("'a''c'", {"a": "a", "'": "'", "c": "c"}, id="doubled_quote"),
]


@pytest.mark.parametrize(("text", "expected"), ESCAPES)
def test_escapes(text: str, expected: dict[str, str]) -> None:
    node, _ = tree(text)
    assert isinstance(node, ScalarNode)
    assert node.text == "".join(expected)
    assert {c: node.source.part(i, i + 1).text[0] for i, c in enumerate(node.text)} == expected
    assert node.source.part(len(node.text) - 1, len(node.text)).text == "c"


def test_stock_file_reads_as_pyyaml_reads_it(installed_torch: TorchInstall) -> None:
    text = installed_torch.derivatives_yaml.read_text()
    node, report = tree(text)
    assert report.diagnostics == []
    assert plain(node) == yaml.load(text, Loader=yaml.CBaseLoader)


def test_stock_entries_know_their_formulas(installed_torch: TorchInstall) -> None:
    text = installed_torch.derivatives_yaml.read_text()
    report = Report()
    entries = parse_entries(SourceFile("f", text), report)
    loaded = yaml.load(text, Loader=yaml.CBaseLoader)
    assert report.diagnostics == []
    for entry, expected in zip(entries, loaded, strict=True):
        assert entry.name.span.text == entry.name.text == expected["name"]
        assert entry.span.text.startswith("name:")
        blocks = expected.get("dispatch", {"Default": expected})
        for block in entry.dispatch:
            wanted = {
                k: v for k, v in blocks[block.key].items() if k not in ("name", "output_differentiability")
            }
            assert {raw.key.text: raw.text for raw in block.formulas} == wanted


BYTES = [
    pytest.param(b"\xef\xbb\xbfa: b", "a: b", None, id="byte_order_mark"),
    pytest.param("é: b".encode(), "é: b", None, id="utf8"),
    pytest.param(
        b"a: \xff",
        None,
        "f:1:4: error: byte 0xff is not UTF-8; save the file as UTF-8\n"
        "a: \N{REPLACEMENT CHARACTER}\n   ^\n\n1 error\n",
        id="other_encoding",
    ),
]


@pytest.mark.parametrize(("content", "text", "message"), BYTES)
def test_bytes(content: bytes, text: str | None, message: str | None) -> None:
    report = Report()
    source = decode_source(content, "f", report)
    assert (None if source is None else source.text) == text
    assert report.render() == (message or "")


def test_deeply_nested_values_are_refused() -> None:
    for text in ("[" * 500 + "]" * 500, "\n".join(" " * i + "- " for i in range(100)), "[" * 100000):
        node, report = tree(text)
        assert node is None
        assert len(report.errors) == 1


def test_windows_line_ends() -> None:
    node, _ = tree("a: b\r\nc: slef\r\n")
    assert isinstance(node, MappingNode)
    assert [(str(key.span), str(value.span)) for key, value in node.pairs] == [
        ("f:1:1", "f:1:4"),
        ("f:2:1", "f:2:4"),
    ]
