"""The one door to torchgen: derivatives as torch itself reads them, handed on as plain frozen records.

torchgen is the code generator that ships inside every torch wheel. Its classes change between releases, so they stop
here: the rest of ``codegen`` sees only the records below.
"""

from __future__ import annotations

import importlib
import pickle
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .cache import keep_file
from .locate import TorchInstall
from .word_filter import WordFilteredRe


@dataclass(frozen=True)
class FormulaRecord:
    """One gradient formula of an entry."""

    inputs: tuple[str, ...]
    """Arguments whose gradients it computes, ``("self",)`` or several for one formula that returns a tuple."""
    written: str
    """The text in the YAML, ``grad * other.conj()``."""
    resolved: str
    """The same text over saved values: ``self.sym_sizes()`` has become ``self_sym_sizes``."""


@dataclass(frozen=True)
class SavedRecord:
    """One value that the forward keeps for the node."""

    name: str
    """``self_sym_sizes``"""
    ctype: str
    """Its C++ type before it is stored, as torchgen spells it: ``c10::SymIntArrayRef``."""
    expression: str
    """How the forward reads it: ``self.sym_sizes()``."""
    is_output: bool
    """Whether it comes from a result of the forward operator rather than from an argument."""


@dataclass(frozen=True)
class InputRecord:
    """One argument of the forward operator that has a gradient."""

    name: str
    is_list: bool
    """Whether it is a list of tensors: then the node has one output edge for each element."""


@dataclass(frozen=True)
class OutputRecord:
    """One differentiable result of the forward operator: the node takes its gradient (or gradients, for a list)."""

    name: str
    is_list: bool


@dataclass(frozen=True)
class NodeRecord:
    """Everything torchgen knows about one autograd node."""

    node: str
    """``MulBackward0``"""
    operator: str
    """Name with overload of the forward operator, ``mul.Tensor``."""
    schema: str
    """Schema of the forward operator."""
    dispatch_key: str
    """``Default`` or the key of a per-key entry, ``AutogradNestedTensor``."""
    entry_schema: str
    """The ``name:`` of the YAML entry that it comes from: differs from ``schema`` for derived nodes."""
    origin: str
    """``entry``, ``view_copy`` or ``foreach``: written in the YAML, or derived from an entry."""
    inputs: tuple[InputRecord, ...]
    outputs: tuple[OutputRecord, ...]
    named_gradients: tuple[str, ...]
    """``grad_<output>`` names in order of the node's incoming gradients."""
    formulas: tuple[FormulaRecord, ...]
    saved: tuple[SavedRecord, ...]
    """In the order of the node struct's fields."""
    non_differentiable: tuple[str, ...]


@dataclass(frozen=True)
class SkippedEntry:
    """An entry that makes no node, and why."""

    schema: str
    reason: str


@dataclass(frozen=True)
class Derivatives:
    """All nodes of a derivatives YAML, by name, and the entries that make none."""

    nodes: tuple[NodeRecord, ...]
    skipped: tuple[SkippedEntry, ...] = field(default=())


class ForeignTorchgenError(Exception):
    """This process has imported the torchgen of another torch; a fresh process is needed."""


def load_derivatives(install: TorchInstall, parsed_operators: Path | None = None) -> Derivatives:
    """Read the packaged derivatives of ``install`` through its own torchgen.

    ``parsed_operators`` is a file that keeps torchgen's parsed operators from one run to the next, which is a third of
    the work; its name must change with everything that they depend on.

    Raises:
        ForeignTorchgenError: another torchgen was imported before.
    """
    _require_torchgen(install)
    if parsed_operators is not None:
        _remember_operators(install, parsed_operators)
    with _roomy_regex_cache(), _filtered_searches():
        infos, functions = _load(install)
        # Matching adds the foreach operators to the table, so what the YAML says is noted before.
        entries = _EntryIndex(infos)
        matched = importlib.import_module("torchgen.api.autograd").match_differentiability_info(
            functions, infos
        )
        return _collect(infos, matched, entries)


def parse_native_functions(install: TorchInstall) -> list[Any]:
    """Torchgen's ``NativeFunction`` objects for every ATen operator of ``install``."""
    _require_torchgen(install)
    generator = importlib.import_module("torchgen.gen")
    parsed = generator.parse_native_yaml(str(install.native_functions_yaml), str(install.tags_yaml))
    functions: list[Any] = parsed.native_functions
    return functions


def _remember_operators(install: TorchInstall, file: Path) -> None:
    """Give torchgen the operators that it parsed in an earlier run, or keep those that it parses now.

    Its own memory of them is private, so nothing happens where that is missing.
    """
    generator = importlib.import_module("torchgen.gen")
    memory = getattr(generator, "_GLOBAL_PARSE_NATIVE_YAML_CACHE", None)
    if memory is None:
        return
    try:
        functions = pickle.loads(file.read_bytes())
    except Exception:
        # Missing or cut short: parsed anew.
        functions = parse_native_functions(install)
        keep_file(file, pickle.dumps(functions, pickle.HIGHEST_PROTOCOL))
    memory[str(install.native_functions_yaml)] = generator.ParsedYaml(functions, {})


def _require_torchgen(install: TorchInstall) -> None:
    torchgen = importlib.import_module("torchgen")
    if torchgen.__file__ is None or not install.torchgen.samefile(torchgen.__path__[0]):
        raise ForeignTorchgenError(
            f"torchgen of another torch is loaded in this process; put {install.torchgen.parent} first on "
            "PYTHONPATH and start a fresh process"
        )


@contextmanager
def _roomy_regex_cache() -> Iterator[None]:
    """Torchgen compiles thousands of patterns again and again; with room for all of them it takes half the time.

    The size is a private constant of the standard library, so nothing happens where it is missing.
    """
    before = getattr(re, "_MAXCACHE", None)
    if before is None:
        yield
        return
    setattr(re, "_MAXCACHE", 1 << 16)  # noqa: B010
    try:
        yield
    finally:
        setattr(re, "_MAXCACHE", before)  # noqa: B010


@contextmanager
def _filtered_searches() -> Iterator[None]:
    """Let torchgen's loader search through `WordFilteredRe`, which halves the patterns that it compiles."""
    loader: Any = importlib.import_module("torchgen.packaged.autograd.load_derivatives")
    before = loader.re
    loader.re = WordFilteredRe()
    try:
        yield
    finally:
        loader.re = before


def _load(install: TorchInstall) -> tuple[Any, list[Any]]:
    loader = importlib.import_module("torchgen.packaged.autograd.load_derivatives")
    infos, _keys = loader.load_derivatives(
        str(install.derivatives_yaml), str(install.native_functions_yaml), str(install.tags_yaml)
    )
    return infos, parse_native_functions(install)


def _collect(infos: Mapping[Any, Mapping[str, Any]], matched: list[Any], entries: _EntryIndex) -> Derivatives:
    nodes: dict[str, NodeRecord] = {}
    for function in matched:
        for key, info in (function.info or {}).items():
            if info.op is None or info.op in nodes:
                continue
            nodes[info.op] = _node_record(function, key, info, entries)
    skipped = tuple(
        SkippedEntry(str(info.func.func), _why_skipped(info))
        for per_key in infos.values()
        for info in per_key.values()
        if info.op is None and entries.is_written(info)
    )
    return Derivatives(tuple(nodes[name] for name in sorted(nodes)), skipped)


def _why_skipped(info: Any) -> str:
    if info.non_differentiable_arg_names:
        return "every argument is marked non_differentiable"
    return "no gradient formula, only the differentiability of its outputs or a forward formula"


class _EntryIndex:
    """Finds the YAML entry behind a node that torchgen derived from another one."""

    def __init__(self, infos: Mapping[Any, Mapping[str, Any]]) -> None:
        self._schemas = tuple(infos)
        self._known = {id(info) for per_key in infos.values() for info in per_key.values()}
        self._first_with: dict[int, Any] = {}
        for per_key in infos.values():
            for info in per_key.values():
                self._first_with.setdefault(id(info.derivatives), info)
        self._is_reference = importlib.import_module("torchgen.api.autograd").is_reference_for_foreach

    def is_written(self, info: Any) -> bool:
        """Whether the YAML has this entry itself: a view_copy operator shares the list of another one."""
        return self._first_with.get(id(info.derivatives)) is info

    def origin_of(self, function: Any, info: Any) -> tuple[str, str]:
        """The kind of origin and the schema of the entry."""
        if self.is_written(info):
            return "entry", str(info.func.func)
        if id(info) in self._known:
            return "view_copy", str(self._first_with[id(info.derivatives)].func.func)
        for schema in self._schemas:
            if self._is_reference(function.func, schema):
                return "foreach", str(schema)
        raise LookupError(f"no entry found from which '{info.op}' was derived")


def _node_record(function: Any, key: str, info: Any, entries: _EntryIndex) -> NodeRecord:
    origin, entry_schema = entries.origin_of(function, info)
    outputs = _outputs(function if origin == "foreach" else replace(function, func=info.func), key)
    return NodeRecord(
        node=info.op,
        operator=str(info.func.func.name) if origin != "foreach" else str(function.func.func.name),
        schema=str(info.func.func) if origin != "foreach" else str(function.func.func),
        dispatch_key=key,
        entry_schema=entry_schema,
        origin=origin,
        inputs=tuple(InputRecord(b.name, _is_tensor_list(b.type)) for b in info.args_with_derivatives),
        outputs=outputs,
        named_gradients=tuple(info.available_named_gradients),
        formulas=tuple(
            FormulaRecord(d.var_names, d.original_formula, d.formula)
            for d in sorted(info.derivatives, key=lambda d: _position(info, d))
        ),
        saved=_saved(info.all_saved_inputs, False) + _saved(info.all_saved_outputs, True),
        non_differentiable=tuple(info.non_differentiable_arg_names),
    )


def _position(info: Any, derivative: Any) -> int:
    names = [binding.name for binding in info.args_with_derivatives]
    return min(names.index(name) for name in derivative.var_names)


def _is_tensor_list(cpp_type: str) -> bool:
    return cpp_type in ("at::TensorList", "const at::ITensorListRef &")


def _outputs(function: Any, key: str) -> tuple[OutputRecord, ...]:
    context = importlib.import_module("torchgen.context")
    autograd = importlib.import_module("torchgen.api.autograd")
    with context.native_function_manager(function.func):
        outputs = autograd.gen_differentiable_outputs(function, key)
    # torchgen calls the result of an operator that changes its first argument by that argument; formulas do not.
    inplace = function.func.func.kind().name == "inplace"
    return tuple(OutputRecord("result" if inplace else o.name, str(o.type) != "Tensor") for o in outputs)


def _saved(attributes: Any, is_output: bool) -> tuple[SavedRecord, ...]:
    """Node structs list their fields by name, inputs before outputs."""
    records: dict[str, SavedRecord] = {}
    for attribute in attributes:
        name = attribute.nctype.name
        text = name if isinstance(name, str) else name.name
        records.setdefault(
            text, SavedRecord(text, attribute.nctype.type.cpp_type(), attribute.expr, is_output)
        )
    return tuple(records[name] for name in sorted(records))
