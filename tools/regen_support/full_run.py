"""A run that does everything: read, check, model, emit, compare. Imported only where there is work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import jinja2
import yaml

from codegen.model.header_check import HeaderMismatchError, require_equal
from codegen.model.node import Mode, Model
from codegen.output import find_changes
from codegen.pipeline import BadDerivativesError, Settings, Timings, load_model, render
from codegen.preconditions import TORCH_TABLE
from codegen.torch_install.cache import Cache
from codegen.torch_install.exports import SymbolsUnreadableError
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.node_structs import HeaderUnreadableError, LibclangMissingError, NodeStructsRun
from codegen.torch_install.operators import BrokenInstallError
from codegen.torch_install.vocabulary import DECLARING_HEADERS
from tools.regen_support.errors import BadInputError
from tools.regen_support.options import ROOT, Options
from tools.regen_support.outcome import EQUAL, NO_LIBCLANG, NOT_ASKED, Outcome

Progress = Callable[[str], None]
"""Told what is being done."""

_EXPECTED = (
    BadDerivativesError,
    BrokenInstallError,
    HeaderMismatchError,
    HeaderUnreadableError,
    SymbolsUnreadableError,
)
"""What bad input, or a torch that is not supported, raises."""


def full_run(options: Options, install: TorchInstall, progress: Progress) -> Outcome:
    """Everything but the writing.

    Raises:
        BadInputError: the derivatives have errors, or the torch is not one that can be generated for.
    """
    cache = Cache(options.cache)
    timings = Timings()
    settings = Settings(
        forced_mode=Mode.DELEGATE if options.delegate_only else None, line_directives=options.line_directives
    )
    with ExitStack() as stack:
        try:
            structs = stack.enter_context(NodeStructsRun(install, cache)) if options.header_check else None
            progress(f"reading the derivatives of torch {install.version}")
            model = load_model(install, settings, timings, cache)
            progress(f"generating for {len(model.nodes)} nodes")
            texts = render(model, settings, timings)
            with timings.phase("compare"):
                changes = find_changes(options.out, texts)
            progress("comparing the model with the installed header")
            with timings.phase("header check"):
                header_check = _check_header(model, structs, install)
        except _EXPECTED as error:
            raise BadInputError(str(error).rstrip("\n")) from error
    return Outcome(
        install.version,
        options.out,
        tuple(texts),
        changes,
        header_check,
        dict(timings.seconds),
        cache.hits,
        texts,
        model.notices,
    )


def load_other(options: Options, install: TorchInstall, progress: Progress) -> Model:
    """The model of a torch for a comparison: what links does not count in it.

    Raises:
        BadInputError: its derivatives have errors, or it is not one that can be generated for.
    """
    progress(f"reading the derivatives of torch {install.version}")
    try:
        settings = Settings(forced_mode=Mode.DELEGATE, must_take_effect=False)
        return load_model(install, settings, Timings(), Cache(options.cache))
    except _EXPECTED as error:
        raise BadInputError(f"torch {install.version}: {error}".rstrip("\n")) from error


def input_files(install: TorchInstall) -> list[Path]:
    """Every single file that a run reads; `input_folders` has the rest."""
    return [
        install.derivatives_yaml,
        TORCH_TABLE,
        install.native_functions_yaml,
        install.torchgen / "model.py",
        install.functions_header,
        install.helpers_header,
        install.root / "version.py",
        *(install.include / header for header in DECLARING_HEADERS),
        # Their versions, which stand in there, can show in the output.
        Path(jinja2.__file__),
        Path(yaml.__file__),
        ROOT / "tools" / "regen.py",
    ]


def input_folders(templates: Path = Settings.templates) -> dict[str, str]:
    """Folders of which every file of a pattern is read."""
    return {
        str(ROOT / "codegen"): "*.py",
        str(ROOT / "tools" / "regen_support"): "*.py",
        str(templates): "*.j2",
    }


def _check_header(model: Model, structs: NodeStructsRun | None, install: TorchInstall) -> str:
    if structs is None:
        return NOT_ASKED
    try:
        found = structs.result()
    except LibclangMissingError as error:
        return f"{NO_LIBCLANG}: {error}"
    require_equal(model, found, install.functions_header.name)
    return EQUAL
