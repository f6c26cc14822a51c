"""``python -m codegen check``: what it prints and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codegen import __main__ as command_line
from codegen.parse.report import InternalError
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import Operators
from codegen.torch_install.vocabulary import Vocabulary

from ..conftest import CASES


@pytest.fixture(autouse=True)
def loaded_once(operators: Operators, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the installed torch takes a second; `test_runs_as_a_module` does it for all."""
    monkeypatch.setattr(command_line, "load_operators", lambda *_: operators)
    monkeypatch.setattr(command_line, "load_vocabulary", lambda *_: vocabulary)


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = command_line.main(["check", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_clean_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    assert check(capsys, "c13.yaml") == (0, "c13.yaml: no errors\n", "")


def test_notices_leave_the_exit_code_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CASES)
    code, printed, _ = check(capsys, "c7.yaml")
    assert (code, printed.splitlines()[-1]) == (0, "1 notice")
    assert check(capsys, "--quiet", "c7.yaml") == (0, "c7.yaml: no errors\n", "")


def test_operator_of_one_s_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES)
    assert check(capsys, "c15.yaml")[0] == 2
    assert check(capsys, "c15.yaml", "--native", "c15_native.yaml") == (0, "c15.yaml: no errors\n", "")


def test_function_from_one_s_own_header(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    derivatives = tmp_path / "mine.yaml"
    derivatives.write_text("- name: exp(Tensor self) -> Tensor\n  self: mine::exp_backward(grad, result)\n")
    header = tmp_path / "mine.h"
    header.write_text(
        "namespace mine {\nat::Tensor exp_backward(const at::Tensor& grad, const at::Tensor& y);\n}\n"
    )
    code, printed, _ = check(capsys, str(derivatives))
    assert code == 2
    assert "there is no namespace 'mine'" in printed.splitlines()[0]
    assert check(capsys, str(derivatives), "--header", str(header))[0] == 0


NATIVE_MISTAKES = [
    pytest.param(
        "- func: mine(Tensor self, Tensor grad_input_mask) -> Tensor\n",
        "- name: mine(Tensor self, Tensor grad_input_mask) -> Tensor\n  self: grad\n",
        "mine.yaml:1:34: error: 'grad_input_mask' cannot be the name of an argument: "
        "formulas use it for something else\n"
        "- name: mine(Tensor self, Tensor grad_input_mask) -> Tensor\n"
        "                                 ^~~~~~~~~~~~~~~\n"
        "hint: give the argument another name in the operator's schema\n\n1 error\n",
        id="reserved_argument",
    ),
    pytest.param(
        "- func: mine(Tensor self -> Tensor\n",
        "- name: exp(Tensor self) -> Tensor\n  self: grad * result\n",
        "native.yaml:1:13: error: this is no schema: this '(' is never closed\n"
        "- func: mine(Tensor self -> Tensor\n"
        "            ^\n\n1 error\n",
        id="schema_syntax",
    ),
    pytest.param(
        "- fnuc: mine(Tensor self) -> Tensor\n",
        "- name: exp(Tensor self) -> Tensor\n  self: grad * result\n",
        "native.yaml:1:3: error: expected an operator with 'func: <schema>'\n"
        "- fnuc: mine(Tensor self) -> Tensor\n"
        "  ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        "hint: write '- func: <schema>'\n\n1 error\n",
        id="no_schema",
    ),
]


@pytest.mark.parametrize(("native", "derivatives", "expected"), NATIVE_MISTAKES)
def test_mistakes_about_operators_of_one_s_own(
    native: str,
    derivatives: str,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("native.yaml").write_text(native)
    Path("mine.yaml").write_text(derivatives)
    assert check(capsys, "mine.yaml", "--native", "native.yaml") == (2, expected, "")


def test_missing_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed, _ = check(capsys, "absent.yaml")
    assert code == 2
    assert (
        printed == "absent.yaml:1:1: error: cannot read 'absent.yaml': No such file or directory\n\n1 error\n"
    )


def test_torch_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, printed, errors = check(capsys, str(CASES / "c6.yaml"), "--torch", str(tmp_path))
    assert (code, printed) == (2, "")
    assert errors == f"error: no package 'torch' at {tmp_path / 'torch'}; expected an installed torch wheel\n"


def test_our_own_mistake_looks_different(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("no such row")

    monkeypatch.chdir(CASES)
    monkeypatch.setattr("codegen.check.entries.find_operator", broken)
    code, printed, errors = check(capsys, "c6.yaml")
    assert (code, printed) == (3, "")
    assert errors == (
        "internal error in the generator while it processed entry 'sinh(Tensor self) -> Tensor' "
        "at c6.yaml:1:9\n"
        "  ValueError: no such row\n"
        "this is a defect of backbind, not of the file; please report it with the entry\n"
    )
    assert issubclass(InternalError, Exception)


def test_runs_as_a_module_without_importing_torch(installed_torch: TorchInstall) -> None:
    program = (
        "import sys, json; from codegen.__main__ import main; "
        f"code = main(['check', '--quiet', {str(CASES / 'c14.yaml')!r}]); "
        "print(json.dumps([code, sorted({'torch', 'torchgen'} & set(sys.modules))]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [0, []]


HOSTILE = [
    pytest.param(b"", 0, "{}: no errors\n", id="empty"),
    pytest.param(b"\xef\xbb\xbf", 0, "{}: no errors\n", id="byte_order_mark"),
    pytest.param(
        b"\x7fELF\x02\x01\x01\x00\xff",
        2,
        "{}:1:9: error: byte 0xff is not UTF-8; save the file as UTF-8\n�ELF�����\n        ^\n\n1 error\n",
        id="binary",
    ),
    pytest.param(
        b"- name: sinh(Tensor self) -> Tensor\r\n  self: grad * self.cosh().conj()\r\n",
        0,
        "{}: no errors\n",
        id="line_ends_of_another_system",
    ),
    pytest.param(
        b'- name: sinh(Tensor self) -> Tensor\n  "input\\e[2J\\a": grad\n',
        2,
        "{}:2:4: error: 'input\\x1b[2J\\x07' is no argument or output of 'sinh'\n"
        '  "input\\e[2J\\a": grad\n'
        "   ^~~~~~~~~~~\n"
        "hint: the argument is 'self'; the output is 'result'\n\n1 error\n",
        id="control_characters",
    ),
    pytest.param(
        b'- name: sinh(Tensor self) -> Tensor\n  "se\\nlf": grad\n  "\\u202eself": grad\n',
        2,
        "{}:2:4: error: 'se\\nlf' is no argument or output of 'sinh'\n"
        '  "se\\nlf": grad\n'
        "   ^~~~~~\n"
        "hint: did you mean 'self'?\n"
        "      the argument is 'self'; the output is 'result'\n\n"
        "{}:3:4: error: '\\u202eself' is no argument or output of 'sinh'\n"
        '  "\\u202eself": grad\n'
        "   ^~~~~~~~~~\n"
        "hint: did you mean 'self'?\n"
        "      the argument is 'self'; the output is 'result'\n\n2 errors\n",
        id="line_feed_and_order_of_writing",
    ),
]


@pytest.mark.parametrize(("content", "code", "expected"), HOSTILE)
def test_hostile_file(
    content: bytes,
    code: int,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.yaml").write_bytes(content)
    assert check(capsys, "bad.yaml") == (code, expected.replace("{}", "bad.yaml"), "")


@pytest.mark.parametrize("option", [[], ["absent.yaml", "--native"], ["absent.yaml", "--header"]])
def test_folder_in_place_of_a_file(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder\x1b").mkdir()
    code, printed, errors = check(capsys, *option, "folder\x1b")
    assert (code, errors) == (2, "")
    assert printed.splitlines()[0] == ("folder\\x1b:1:1: error: cannot read 'folder\\x1b': Is a directory")


def test_torch_s_own_formula_cannot_be_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    derivatives = tmp_path / "mine.yaml"
    derivatives.write_text("- name: sinc(Tensor self) -> Tensor\n  self: 2 * sinc_backward(grad, self)\n")
    code, printed, _ = check(capsys, str(derivatives))
    assert (code, printed.splitlines()[0]) == (
        2,
        f"{derivatives}:2:9: error: this formula would change nothing: 'sinc' would go on computing the one that "
        "torch was compiled with",
    )
