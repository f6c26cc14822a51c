"""A YAML document as a tree in which every value knows its place.

It is built from pyyaml's parsing events rather than from its composed nodes, because events tell anchors and
aliases apart from plain text (``self: *x`` is a formula that lacks quotes) and because a loop over them
cannot overflow the stack on hostile input. Whatever is wrong becomes a message in the report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from .report import Report
from .span import SourceFile, SourceText, Span

MAX_DEPTH = 32
"""How deeply values may nest; derivatives need four levels."""

QUOTE_HINT = "put the value in double quotes if it is a formula"


@dataclass(frozen=True)
class ScalarNode:
    """A scalar: ``source.text`` is its value, and the span leaves out the quotes."""

    source: SourceText
    span: Span
    """The scalar as written, quotes included."""
    plain: bool
    """Whether it is written without quotes, so that YAML may take it for a number, a truth value or nothing.
    """

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def value(self) -> str | bool | int | float | None:
        """The value that a YAML loader would give for it; a date or the like counts as text."""
        if not self.plain:
            return self.text
        tag: str = _RESOLVER.resolve(yaml.ScalarNode, self.text, (True, False))  # type: ignore[no-untyped-call]
        if tag == "tag:yaml.org,2002:null":
            return None
        if tag == "tag:yaml.org,2002:bool":
            return self.text.lower() in ("yes", "true", "on")
        if tag == "tag:yaml.org,2002:int":
            return 0
        if tag == "tag:yaml.org,2002:float":
            return 0.0
        return self.text


@dataclass(frozen=True)
class SequenceNode:
    """``[a, b]`` or a block of ``- a`` lines."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True)
class MappingNode:
    """``{a: b}`` or a block of ``a: b`` lines, keys in the order of the file. Keys are always scalars."""

    pairs: tuple[tuple[ScalarNode, Node], ...]
    span: Span


Node = ScalarNode | SequenceNode | MappingNode

_RESOLVER = yaml.resolver.Resolver()


def read_source(path: Path, name: str, report: Report) -> SourceFile | None:
    """The file's text, or None after a message: it cannot be read, or is not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        report.error(Span(SourceFile(name, ""), 0, 0), f"cannot read '{name}': {error.strerror or error}")
        return None
    return decode_source(content, name, report)


def decode_source(content: bytes, name: str, report: Report) -> SourceFile | None:
    """The text of ``content``, or None after a message that points at the first byte that is not UTF-8."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        source = SourceFile(name, content.decode("utf-8", errors="replace"))
        offset = len(content[: error.start].decode("utf-8"))
        byte = content[error.start]
        report.error(
            Span(source, offset, offset + 1), f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        )
        return None
    # A byte order mark is no part of the text, and libyaml does not count it either.
    return SourceFile(name, text.removeprefix("\ufeff"))


def parse_tree(source: SourceFile, report: Report) -> Node | None:
    """The tree of the file's one document, or None if it is empty or after a message about what is wrong."""
    builder = _Builder(source, report)
    try:
        for event in yaml.parse(source.text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        builder.syntax_error(error)
        return None
    except (yaml.reader.ReaderError, UnicodeEncodeError):
        builder.unacceptable_character()
        return None
    return None if builder.failed else builder.root


@dataclass
class _Open:
    """A sequence or mapping whose end has not come yet."""

    start: int
    mapping: bool
    items: list[Node]


class _Builder:
    """Collects events into a tree; after the first mistake that breaks the structure it only marks itself
    failed.
    """

    def __init__(self, source: SourceFile, report: Report) -> None:
        self.source = source
        self.report = report
        self.root: Node | None = None
        self.open: list[_Open] = []
        self.documents = 0
        self.failed = False

    def take(self, event: yaml.Event) -> None:
        if self.failed:
            return
        if isinstance(event, yaml.ScalarEvent) and event.anchor is None and event.tag is None:
            self.add(self.scalar(event))
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents == 2:
                self.fail(
                    event, "a second YAML document starts here; expected one document", "remove this line"
                )
        elif isinstance(event, yaml.AliasEvent):
            self.fail(event, "this is a YAML alias; aliases are not supported here", QUOTE_HINT)
        elif isinstance(event, yaml.NodeEvent):
            self.take_node(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.close(event)

    def take_node(self, event: yaml.NodeEvent) -> None:
        if event.anchor is not None:
            self.fail(event, "this is a YAML anchor; anchors are not supported here", QUOTE_HINT)
        elif (tag := getattr(event, "tag", None)) is not None:
            self.fail(event, f"this is a YAML tag, '{tag}'; tags are not supported here", QUOTE_HINT)
        elif len(self.open) >= MAX_DEPTH:
            self.fail(event, f"values nest more than {MAX_DEPTH} levels deep")
        else:
            self.open.append(_Open(_place(event)[0], isinstance(event, yaml.MappingStartEvent), []))

    def close(self, event: yaml.CollectionEndEvent) -> None:
        done = self.open.pop()
        # The end of a block collection is marked at the next token; the text before it ends earlier.
        _, end = _place(event)
        while end > done.start and self.source.text[end - 1].isspace():
            end -= 1
        span = Span(self.source, done.start, end)
        if not done.mapping:
            self.add(SequenceNode(tuple(done.items), span))
            return
        pairs: list[tuple[ScalarNode, Node]] = []
        seen: dict[str, ScalarNode] = {}
        for key, value in zip(done.items[::2], done.items[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                self.report.error(key.span, "a key must be text, not a list or mapping", QUOTE_HINT)
            elif key.text in seen:
                first = seen[key.text].span
                self.report.error(
                    key.span,
                    f"the key '{key.text}' occurs twice in this mapping",
                    f"the first one is at line {first.line}; keep one of them",
                )
            else:
                seen[key.text] = key
                pairs.append((key, value))
        self.add(MappingNode(tuple(pairs), span))

    def add(self, node: Node) -> None:
        if self.open:
            self.open[-1].items.append(node)
        else:
            self.root = node

    def scalar(self, event: yaml.ScalarEvent) -> ScalarNode:
        start, end = _place(event)
        return ScalarNode(
            locate_scalar(self.source, start, end, event.value, event.style),
            Span(self.source, start, max(start, end)),
            event.style in (None, ""),
        )

    # Messages

    def fail(self, event: yaml.Event, message: str, hint: str | None = None) -> None:
        start, end = _place(event)
        line_end = self.source.text.find("\n", start)
        end = min(end, len(self.source.text) if line_end < 0 else line_end)
        self.report.error(Span(self.source, start, max(start, end)), message, hint)
        self.failed = True

    def syntax_error(self, error: yaml.MarkedYAMLError) -> None:
        if error.context == "while scanning a quoted scalar" and error.context_mark is not None:
            start = error.context_mark.index
            span = Span(self.source, start, start + 1)
            self.report.error(span, "this quoted value is never closed", "add the closing quote at its end")
            return
        mark = error.problem_mark or error.context_mark
        offset = min(mark.index if mark is not None else 0, len(self.source.text))
        problem = " ".join(part for part in (error.context, error.problem) if part)
        hint = None
        if "mapping values are not allowed" in problem:
            hint = "a value that contains ': ' must be put in double quotes"
        elif "cannot start any token" in problem or "tab character" in problem:
            hint = (
                "indent with spaces, and put a formula that starts with a special character in double quotes"
            )
        elif "did not find expected" in problem:
            hint = (
                "check the indentation, and put a formula with quotes or brackets of its own in double quotes"
            )
        self.report.error(Span(self.source, offset, offset), f"this is not valid YAML: {problem}", hint)

    def unacceptable_character(self) -> None:
        """Point at the first character that YAML forbids; libyaml counts bytes here, so look again."""
        found = _UNACCEPTABLE.search(self.source.text)
        offset = found.start() if found else 0
        code = ord(found.group()) if found else 0
        self.report.error(
            Span(self.source, offset, offset + 1),
            f"the character U+{code:04X} is not allowed in YAML",
            "remove it",
        )


def _place(event: yaml.Event) -> tuple[int, int]:
    """Where an event's text starts and ends."""
    assert event.start_mark is not None, "libyaml marks every event"
    assert event.end_mark is not None, "libyaml marks every event"
    return event.start_mark.index, event.end_mark.index


_UNACCEPTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff")


def locate_scalar(source: SourceFile, start: int, end: int, value: str, style: str | None) -> SourceText:
    """Say for each character of ``value`` where in ``source.text[start:end]`` it is written.

    Quotes, escapes, folded lines and block headers make the value differ from the written form.
    """
    raw = source.text[start:end]
    inset = 0
    if style in ("'", '"'):
        start, end, raw = start + 1, end - 1, raw[1:-1]
    elif style in ("|", ">"):
        header_end = raw.find("\n") + 1
        inset = header_end or len(raw)
    if raw == value:
        return SourceText(value, Span(source, start, end))
    written_end = start + len(raw.rstrip()) if style in ("|", ">") else end
    origins = _align(raw, inset, value, style)
    first = start + origins[0] if origins else start
    return SourceText(
        value, Span(source, first, max(first, written_end)), tuple(start + offset for offset in origins)
    )


def _align(raw: str, position: int, value: str, style: str | None) -> list[int]:
    """For each character of ``value`` its offset in ``raw``, never past the end of ``raw``."""
    last = max(len(raw) - 1, 0)
    origins: list[int] = []
    for character in value:
        if character in " \t\n" and not (style == '"' and raw.startswith("\\", position)):
            origins.append(min(position, last))
            # Of a line break and the indentation after it, folding leaves one blank; the next word skips the
            # rest.
            if raw[position : position + 1] == character:
                position += 1
            continue
        while position < last and raw[position].isspace() and raw[position] != character:
            position += 1
        while style == '"' and raw.startswith(("\\\n", "\\\r"), position):
            position += 1
            while position < last and raw[position].isspace():
                position += 1
        origins.append(min(position, last))
        if style == '"' and raw.startswith("\\", position):
            position += 2 + {"x": 2, "u": 4, "U": 8}.get(raw[position + 1 : position + 2], 0)
        elif style == "'" and character == "'":
            position += 2
        else:
            position += 1
    return origins
