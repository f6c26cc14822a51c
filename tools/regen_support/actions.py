"""Does what the command line asks for. The heavy modules are imported only where something has to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codegen.output import MANIFEST, apply_changes, depfile, list_files
from codegen.torch_install.cache import content_key
from codegen.torch_install.locate import TorchInstall, TorchNotFoundError, locate_torch
from tools.regen_support.errors import BadInputError
from tools.regen_support.messages import (
    Progress,
    changes_as_data,
    describe_changes,
    note_on_header,
    print_json,
    print_text,
    shown,
)
from tools.regen_support.only import excerpts
from tools.regen_support.options import Action, Options
from tools.regen_support.outcome import EQUAL, NO_LIBCLANG, Outcome
from tools.regen_support.record import Record, load_record, make_record
from tools.regen_support.statistics import describe_statistics, seconds_of_process, statistics

CLEAN = 0
STALE = 1


def run(options: Options, progress: Progress) -> int:
    """One run; the result is the exit code.

    Raises:
        BadInputError: something that was given cannot be used.
    """
    try:
        install = locate_torch(options.torch_root)
    except TorchNotFoundError as error:
        raise BadInputError(str(error)) from error
    if options.action is Action.DIFF:
        return _diff(options, install, progress)
    path = _record_path(options, install)
    record = None if path is None else load_record(path)
    changed_inputs = None if record is None else record.changed_inputs()
    outcome = _known_outcome(options, record, changed_inputs)
    known = None if outcome is None else record
    if outcome is None:
        from tools.regen_support.full_run import full_run

        outcome = full_run(options, install, progress)
    progress.done()
    reasons: Mapping[str, Sequence[str]] = {}
    if options.explain and outcome.changes:
        from tools.regen_support.explain import explain

        reasons = explain(outcome.changes, changed_inputs)
    try:
        if options.action is Action.WRITE:
            apply_changes(outcome.out, outcome.changes)
        if options.action is Action.WRITE or not outcome.changes:
            _remember(options, install, outcome, known)
    except OSError as error:
        raise BadInputError(f"cannot write {error.filename}: {error.strerror}") from error
    _print(options, outcome, reasons)
    return STALE if options.action is Action.CHECK and outcome.changes else CLEAN


def _diff(options: Options, install: TorchInstall, progress: Progress) -> int:
    from codegen.model.difference import compare_models, describe
    from tools.regen_support.full_run import load_other
    from tools.regen_support.other_torch import open_torch

    assert options.other is not None, "--diff comes with its other torch"
    with open_torch(options.other) as other:
        difference = compare_models(
            load_other(options, install, progress), load_other(options, other, progress)
        )
    progress.done()
    if options.as_json:
        print_json(difference.to_json())
    else:
        print_text(describe(difference).removesuffix("\n"))
    return CLEAN


def _settings(options: Options, install: TorchInstall) -> dict[str, Any]:
    """Everything asked for that shows in the output, and which torch it is for."""
    return {
        "torch": str(install.root),
        "torchgen": str(install.torchgen),
        "delegate_only": options.delegate_only,
        "line_directives": options.line_directives,
    }


def _record_path(options: Options, install: TorchInstall) -> Path | None:
    if options.cache is None:
        return None
    return options.cache / f"run-{content_key(str(options.out), str(_settings(options, install)))}.json"


def _known_outcome(
    options: Options, record: Record | None, changed_inputs: Sequence[str] | None
) -> Outcome | None:
    """What the last run found, if nothing that it read or wrote changed since."""
    if (
        record is None
        or changed_inputs
        or not record.outputs_are_current(_generated_files(options.out, record))
    ):
        return None
    if options.header_check and record.header_check != EQUAL and not _still_without_libclang(record):
        return None
    return Outcome(record.torch_version, options.out, tuple(record.outputs), [], record.header_check)


def _generated_files(out: Path, record: Record) -> list[str]:
    """The files of the output folder that are the generator's: known ones, and those that say so."""
    from codegen.emit.file_header import is_generated

    return [
        path
        for path in list_files(out)
        if path in record.outputs or is_generated((out / path).read_bytes().decode(errors="replace"))
    ]


def _still_without_libclang(record: Record) -> bool:
    import importlib.util

    return record.header_check.startswith(NO_LIBCLANG) and importlib.util.find_spec("clang") is None


def _remember(options: Options, install: TorchInstall, outcome: Outcome, known: Record | None) -> None:
    """Note what an up-to-date output folder was made from, for the next run and for ninja."""
    path = _record_path(options, install)
    record = known
    if record is None and (path is not None or options.depfile is not None):
        record = _new_record(options, install, outcome)
        if path is not None:
            record.save(path)
    if options.depfile is not None and record is not None:
        inputs = [shown(Path(one)) for one in record.inputs]
        options.depfile.parent.mkdir(parents=True, exist_ok=True)
        options.depfile.write_text(depfile(shown(outcome.out / MANIFEST), inputs), encoding="utf-8")


def _new_record(options: Options, install: TorchInstall, outcome: Outcome) -> Record:
    from tools.regen_support.full_run import input_files, input_folders

    return make_record(
        _settings(options, install),
        outcome.torch_version,
        outcome.header_check,
        input_files(install),
        () if options.delegate_only else (install.cpu_library,),
        input_folders(),
        outcome.out,
        outcome.outputs,
    )


def _print(options: Options, outcome: Outcome, reasons: Mapping[str, Sequence[str]]) -> None:
    """Print what was asked for."""
    data: dict[str, Any]
    if options.action is Action.ONLY:
        parts = excerpts(outcome, options.node)
        data = {"node": options.node, "parts": [vars(part) for part in parts]}
        text = "\n\n".join(f"{part.path}:\n{part.text}" for part in parts)
    elif options.action is Action.LIST_OUTPUTS:
        data = {"outputs": list(outcome.outputs)}
        text = "\n".join(outcome.outputs)
    else:
        data = changes_as_data(options, outcome, reasons)
        text = describe_changes(options, outcome, reasons)
        note = note_on_header(outcome) if options.header_check else None
        text = text if note is None else f"{text}\n{note}"
        text = "\n\n".join([text, *outcome.notices])
        data |= {"notices": list(outcome.notices)} if outcome.notices else {}
    if options.stats:
        found = statistics(outcome, seconds_of_process())
        data["stats"] = found
        text = f"{text}\n{describe_statistics(found)}"
    if options.as_json:
        print_json(data)
    else:
        print_text(text)
