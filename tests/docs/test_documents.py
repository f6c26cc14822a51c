"""The snippets of the documentation run and print what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import backbind
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/architecture.md", "docs/graphs.md")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """Python code, and the output that stands below it."""

    code: str
    expected: str


def snippets(document: str) -> list[Snippet]:
    """Python blocks that are followed at once by a text block."""
    blocks = [(match.group(1), match.group(2), match.span()) for match in _BLOCK.finditer(document)]
    found = []
    for index, (language, code, (_, end)) in enumerate(blocks):
        if language != "python":
            continue
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        printed = following is not None and following[0] == "text" and following[2][0] == end + 1
        found.append(Snippet(code, following[1] if printed and following is not None else ""))
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_snippets_print_what_the_page_says(name: str) -> None:
    found = snippets((ROOT / name).read_text())
    assert found, "the page has no snippet"
    # A reader begins with a process that holds no plans.
    backbind.reset()
    scope: dict[str, object] = {}
    for snippet in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(snippet.code, name, "exec"), scope)
        assert printed.getvalue() == snippet.expected


def test_the_cpp_of_the_architecture_page_is_what_is_generated() -> None:
    quoted = [
        code
        for language, code in _BLOCK.findall((ROOT / "docs/architecture.md").read_text())
        if language == "cpp"
    ]
    assert quoted, "the page quotes no C++"
    generated = [path.read_text() for path in sorted((ROOT / "generated" / "cpp").glob("*.cpp"))]
    assert [code for code in quoted if not any(code in text for text in generated)] == []


def test_the_readme_counts_the_delegates() -> None:
    coverage = (ROOT / "generated/reference/coverage.md").read_text(encoding="utf-8")
    counts = {
        mode: int(count) for mode, count in re.findall(r"^\| (delegate|inline) \| (\d+) \|$", coverage, re.M)
    }
    said = re.search(r"\((\d+) of (\d+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said is not None
    assert tuple(map(int, said.groups())) == (counts["delegate"], sum(counts.values()))
