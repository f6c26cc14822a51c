"""A function in another process: its answer, its exceptions, its death."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codegen.torch_install import background
from codegen.torch_install.background import Background, BackgroundError

MODULE = '''
"""Functions to be called in another process."""
import os, sys, time

def echo(*words):
    print("this must not mix with the answer")
    return words

def fail(message):
    raise LookupError(message)

def die():
    print("last words", file=sys.stderr)
    os._exit(7)

def sleep():
    time.sleep(600)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that the other process imports beside ours."""
    packages = tmp_path / "packages"
    installed = packages / "codegen" / "torch_install"
    installed.mkdir(parents=True)
    for folder in (packages / "codegen", installed):
        (folder / "__init__.py").touch()
    (installed / "background.py").write_text(Path(background.__file__).read_text())
    (installed / "errands.py").write_text(MODULE)
    monkeypatch.setattr(background, "_PACKAGES", packages)
    return "errands"


def test_it_answers(module: str) -> None:
    with Background(module, "echo", ["a b", "", "\u00e9"]) as run:
        assert run.result() == ["a b", "", "\u00e9"]


@pytest.mark.parametrize("message, shown", [("no such 'thing'", "no such 'thing'"), ("", "LookupError")])
def test_its_exception_is_passed_on(module: str, message: str, shown: str) -> None:
    with Background(module, "fail", [message]) as run, pytest.raises(BackgroundError) as error:
        run.result()
    assert (error.value.kind, str(error.value)) == ("LookupError", shown)


def test_its_death_is_an_error(module: str) -> None:
    with Background(module, "die", []) as run, pytest.raises(BackgroundError) as error:
        run.result()
    assert (error.value.kind, str(error.value)) == ("", "the process ended with status 7: last words")


def test_leaving_ends_it(module: str) -> None:
    with Background(module, "sleep", []) as run:
        process: subprocess.Popen[str] = run._process
        assert process.poll() is None
    assert process.poll() == -9


def test_the_other_process_has_this_interpreter(module: str) -> None:
    with Background(module, "echo", []) as run:
        command = run._process.args
        assert isinstance(command, list)
        assert command[0] == sys.executable
        run.result()
