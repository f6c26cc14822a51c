"""The operators that derivatives may name: native_functions.yaml of the installed torch, and files of the
user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ..parse.report import Report
from ..parse.schema import Schema, SchemaSyntaxError, parse_schema
from ..parse.span import SourceFile
from ..parse.yaml_source import describe
from ..parse.yaml_tree import MappingNode, Node, ScalarNode, SequenceNode, parse_tree, read_source
from .locate import TorchInstall


@dataclass(frozen=True)
class Operator:
    """One operator: its schema and how C++ calls it."""

    schema: Schema
    is_composite: bool
    """Whether it is made of other operators, for autograd too, which then sees those and not it."""
    is_function: bool
    """Whether ``at::name(...)`` exists."""
    is_method: bool
    """Whether ``tensor.name(...)`` exists."""


@dataclass(frozen=True)
class Operators:
    """All operators, found by schema or by name."""

    items: tuple[Operator, ...]

    @cached_property
    def by_schema(self) -> dict[str, Operator]:
        """By the schema as written."""
        return {operator.schema.text: operator for operator in self.items}

    @cached_property
    def by_name(self) -> dict[str, tuple[Operator, ...]]:
        """By the name without overload; ``add`` and ``add_`` are two names."""
        groups: dict[str, list[Operator]] = {}
        for operator in self.items:
            groups.setdefault(operator.schema.name, []).append(operator)
        return {name: tuple(group) for name, group in groups.items()}

    @cached_property
    def functions(self) -> frozenset[str]:
        """The C++ functions of namespace at, with their ``_symint`` and ``_out`` forms."""
        return _cpp_names(operator.schema for operator in self.items if operator.is_function)

    @cached_property
    def methods(self) -> frozenset[str]:
        """The C++ methods of Tensor, with their ``_symint`` forms."""
        return _cpp_names(operator.schema for operator in self.items if operator.is_method)

    def with_more(self, others: Iterable[Operator]) -> Operators:
        """These operators and ``others``, which take the place of those with an equal name and overload."""
        merged = {operator.schema.full_name: operator for operator in self.items}
        merged.update((operator.schema.full_name, operator) for operator in others)
        return Operators(tuple(merged.values()))


class BrokenInstallError(Exception):
    """A file of the installed torch is not what it should be; the message shows where."""


def load_operators(install: TorchInstall) -> Operators:
    """The operators of the installed torch.

    Raises:
        BrokenInstallError: its native_functions.yaml cannot be read.
    """
    report = Report()
    source = read_source(install.native_functions_yaml, str(install.native_functions_yaml), report)
    operators = () if source is None else read_operators(source, report)
    if report.has_errors:
        raise BrokenInstallError(report.render())
    return Operators(operators)


def read_operators(source: SourceFile, report: Report) -> tuple[Operator, ...]:
    """The operators of a file like native_functions.yaml; what is not one is reported and left out."""
    tree = parse_tree(source, report)
    if tree is None:
        return ()
    hint = "write '- func: <schema>'"
    if not isinstance(tree, SequenceNode):
        report.error(tree.span, f"expected a list of operators, found {describe(tree)}", hint)
        return ()
    operators: list[Operator] = []
    for item in tree.items:
        fields = {key.text: value for key, value in item.pairs} if isinstance(item, MappingNode) else {}
        schema = fields.get("func")
        if not isinstance(schema, ScalarNode):
            report.error(item.span, "expected an operator with 'func: <schema>'", hint)
            continue
        variants = fields.get("variants")
        words = variants.text if isinstance(variants, ScalarNode) else "function"
        try:
            parsed = parse_schema(schema.text)
        except SchemaSyntaxError as error:
            report.error(schema.source.part(error.start, error.end), f"this is no schema: {error.message}")
            continue
        operators.append(Operator(parsed, _is_composite(fields), "function" in words, "method" in words))
        generated = fields.get("autogen")
        if isinstance(generated, ScalarNode):
            try:
                operators += _generated_functional(parsed, generated.text)
            except SchemaSyntaxError:
                report.error(generated.source.span, "expected the names of operators, separated by commas")
    return tuple(operators)


def _generated_functional(schema: Schema, autogen: str) -> list[Operator]:
    """The form without side effects that torch generates for an operator that changes its arguments.

    ``autogen`` names it, beside out= forms. It takes the same arguments, changes none, and returns the
    changed values after the outputs: ``f(Tensor(a!) x) -> Tensor`` has ``f_functional(Tensor x) -> (Tensor,
    Tensor x_out)``, and ``f_(Tensor(a!) self) -> Tensor(a!)`` has ``f(Tensor self) -> Tensor``.
    """
    names = [name for name in re.split(r"[\s,]+", autogen) if name and not name.endswith("out")]
    if not names or schema.is_out:
        return []
    head, _, outputs = schema.text.rpartition("->")
    arguments = _MUTATION.sub("", head[head.index("(") :].strip())
    written = _split_outputs(_MUTATION.sub("", outputs.strip()))
    # An argument that is also an output, as in place operators return it, is not returned twice.
    returned = set(_MUTATION.findall(outputs))
    changed = [argument for argument in schema.arguments if argument.written]
    aliases = _MUTATION.findall(head)
    written += [
        f"{argument.type} {argument.name}_out"
        for argument, alias in zip(changed, aliases, strict=False)
        if alias not in returned
    ]
    returns = written[0] if len(written) == 1 else f"({', '.join(written)})"
    return [Operator(parse_schema(f"{name}{arguments} -> {returns}"), False, True, False) for name in names]


def _is_composite(fields: Mapping[str, Node]) -> bool:
    if "structured_delegate" in fields or "structured" in fields:
        return False
    dispatch = fields.get("dispatch")
    if not isinstance(dispatch, MappingNode):
        return True
    keys = (key.strip() for written, _ in dispatch.pairs for key in written.text.split(","))
    return "CompositeImplicitAutograd" in keys


_MUTATION = re.compile(r"\((\w+)!\)")


def _split_outputs(text: str) -> list[str]:
    inside = text.removeprefix("(").removesuffix(")") if text.startswith("(") else text
    return [part.strip() for part in inside.split(",") if part.strip()]


def _cpp_names(schemas: Iterable[Schema]) -> frozenset[str]:
    names: set[str] = set()
    for schema in schemas:
        name = f"{schema.name}_out" if schema.is_out else schema.name
        names.add(name)
        if schema.has_symint:
            names.add(f"{name}_symint")
    return frozenset(names)
