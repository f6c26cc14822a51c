"""Reads derivatives through torchgen in a process of its own.

So a torch that is not the one of this Python can be read, two torches can be compared in one run, and the
slow torchgen works while this process judges the YAML.
"""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from .background import Background, BackgroundError
from .cache import Cache, content_key, own_sources, python_files
from .kept_run import KeptRun
from .locate import TorchInstall
from .torchgen_adapter import (
    Derivatives,
    FormulaRecord,
    InputRecord,
    NodeRecord,
    OutputRecord,
    SavedRecord,
    SkippedEntry,
    load_derivatives,
)


class TorchgenRefusedError(Exception):
    """torchgen does not accept derivatives in which our own check finds no error."""


class TorchgenRun(KeptRun[Derivatives]):
    """Derivatives on their way."""

    def __init__(self, install: TorchInstall, cache: Cache) -> None:
        self._install = install
        key = content_key(
            *python_files(install.torchgen),
            install.derivatives_yaml,
            install.native_functions_yaml,
            install.tags_yaml,
            *own_sources("installed/torchgen_adapter.py", "installed/torchgen_process.py"),
        )
        super().__init__(cache, "torchgen", key, start=lambda: _start(install, cache), from_plain=from_plain)

    def result(self) -> Derivatives:
        """The derivatives.

        Raises:
            TorchgenRefusedError: torchgen raised an error.
        """
        try:
            return super().result()
        except BackgroundError as error:
            raise TorchgenRefusedError(
                f"torchgen of torch {self._install.version} refuses {self._install.derivatives_yaml.name}, "
                f"in which no error was found before:\n  {error.kind}: {error}"
            ) from error


def _start(install: TorchInstall, cache: Cache) -> Background:
    operators = cache.path(
        "native-functions",
        content_key(*python_files(install.torchgen), install.native_functions_yaml, install.tags_yaml),
    )
    arguments = [str(install.root), str(install.torchgen), install.version, str(operators or "")]
    return Background("torchgen_process", "read_plain", arguments, _import_first(install))


def read_plain(root: str, torchgen: str, version: str, operators: str) -> dict[str, Any]:
    """In the other process: the derivatives as plain data."""
    gc.disable()
    install = TorchInstall(Path(root), Path(torchgen), version)
    return to_plain(load_derivatives(install, Path(operators) if operators else None))


def to_plain(derivatives: Derivatives) -> dict[str, Any]:
    """Lists of values in the order of the records' fields."""
    return {
        "nodes": [_values(node) for node in derivatives.nodes],
        "skipped": [_values(entry) for entry in derivatives.skipped],
    }


def from_plain(plain: Mapping[str, Any]) -> Derivatives:
    """What `to_plain` gave, after a way through JSON."""
    return Derivatives(
        tuple(_node(values) for values in plain["nodes"]),
        tuple(SkippedEntry(*values) for values in plain["skipped"]),
    )


def _values(record: Any) -> list[Any]:
    return [_value(getattr(record, one.name)) for one in fields(record)]


def _value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    return _values(value) if is_dataclass(value) else value


def _node(values: list[Any]) -> NodeRecord:
    named = dict(zip((one.name for one in fields(NodeRecord)), values, strict=True))
    named["inputs"] = tuple(InputRecord(*one) for one in named["inputs"])
    named["outputs"] = tuple(OutputRecord(*one) for one in named["outputs"])
    named["named_gradients"] = tuple(named["named_gradients"])
    named["formulas"] = tuple(FormulaRecord(tuple(inputs), *texts) for inputs, *texts in named["formulas"])
    named["saved"] = tuple(SavedRecord(*one) for one in named["saved"])
    named["non_differentiable"] = tuple(named["non_differentiable"])
    return NodeRecord(**named)


def _import_first(install: TorchInstall) -> Path | None:
    """The folder to import torchgen from, unless Python would take the same one anyway."""
    spec = importlib.util.find_spec("torchgen")
    usual = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    same = usual is not None and usual.is_dir() and usual.samefile(install.torchgen)
    return None if same else install.torchgen.parent
