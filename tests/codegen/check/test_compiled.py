"""Changes in torch's own derivatives: those that can take effect, and what is said of those that cannot."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.check import JudgedEntry, check_compiled, check_entries
from codegen.check.compiled import digests, first_blocked
from codegen.model.link_facts import LinkFacts
from codegen.model.node import Mode, Model
from codegen.parse.report import Report
from codegen.parse.span import SourceFile
from codegen.parse.yaml_source import parse_entries
from codegen.torch_install.cache import Cache
from codegen.torch_install.compiled_formulas import CompiledFormulas, is_edited, load_compiled_formulas
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import Operators
from codegen.torch_install.vocabulary import Vocabulary
from codegen.torch_library import find_link_facts

Judge = Callable[[str], tuple[JudgedEntry, ...]]


@pytest.fixture(scope="module")
def judged(operators: Operators, vocabulary: Vocabulary) -> Judge:
    """The entries of a text, which has no errors of other kinds."""

    def run(text: str) -> tuple[JudgedEntry, ...]:
        report = Report()
        source = SourceFile("derivatives.yaml", text)
        entries = check_entries(parse_entries(source, report), operators, vocabulary, report)
        assert report.errors == ()
        return entries

    return run


@pytest.fixture(scope="module")
def compiled(installed_torch: TorchInstall) -> CompiledFormulas:
    found = load_compiled_formulas(installed_torch)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def facts(installed_torch: TorchInstall, vocabulary: Vocabulary, kept_facts: Cache) -> LinkFacts:
    return find_link_facts(installed_torch, vocabulary, kept_facts)


@pytest.fixture(scope="module")
def say(
    judged: Judge, operators: Operators, compiled: CompiledFormulas, facts: LinkFacts
) -> Callable[..., str]:
    """What is said of a text."""

    def run(text: str, compiles_nothing: bool = False) -> str:
        report = Report()
        check_compiled(judged(text), operators, compiled, lambda: facts, report, compiles_nothing)
        return report.render()

    return run


def test_record_is_what_the_installed_torch_says(
    installed_torch: TorchInstall, judged: Judge, compiled: CompiledFormulas
) -> None:
    assert not is_edited(installed_torch)
    text = installed_torch.derivatives_yaml.read_text(encoding="utf-8")
    assert frozenset(digests(judged(text))) == compiled.digests


def test_torch_s_own_derivatives_are_fine(
    installed_torch: TorchInstall, judged: Judge, operators: Operators, compiled: CompiledFormulas
) -> None:
    def not_asked() -> LinkFacts:
        raise AssertionError("nothing differs")

    report = Report()
    text = installed_torch.derivatives_yaml.read_text(encoding="utf-8")
    check_compiled(judged(text), operators, compiled, not_asked, report)
    assert report.diagnostics == []


def test_what_cannot_be_compiled_agrees_with_the_model(
    installed_torch: TorchInstall, judged: Judge, facts: LinkFacts, model: Model
) -> None:
    entries = judged(installed_torch.derivatives_yaml.read_text(encoding="utf-8"))
    ours = {
        (entry.operator.schema.text, raw.key)
        for entry in entries
        for raw, block in zip(entry.raw.dispatch, entry.blocks, strict=True)
        if first_blocked(block, facts) is not None
    }
    theirs = {
        (node.entry_schema, node.dispatch_key)
        for node in model.nodes
        if node.origin == "entry" and node.choice.mode is Mode.DELEGATE
    }
    assert theirs
    assert ours == theirs


SPARSE = """- name: _sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
  self: {self}
  mat1: {mat1}
  mat2: mm_mat2_backward(grad, mat1, mat2.sym_sizes(), mat2.sym_strides(), mat2.layout(), alpha)
"""
SELF, MAT1 = "maybe_multiply(grad, beta)", "mm_mat1_sparse_backward(grad, mat1, mat2, alpha)"
NOTHING = "error: this formula would change nothing: '{}' would go on computing the one that torch was compiled with\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SPARSE.format(self=SELF, mat1=MAT1), id="as_it_was"),
        pytest.param(
            SPARSE.format(self="maybe_multiply( grad,beta )  // scaled", mat1=f"|\n    {MAT1}"), id="layout"
        ),
        pytest.param(
            SPARSE.format(self="grad * beta", mat1="grad.mm(mat2.t()) * alpha"),
            id="compiled_after_the_change",
        ),
        pytest.param(
            "- name: sin(Tensor self) -> Tensor\n  self: grad * self.cos()\n  result: auto_element_wise\n",
            id="compiled_before_and_after",
        ),
        pytest.param(
            "- name: argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor\n  self: grad * 2\n",
            id="torch_has_no_node",
        ),
    ],
)
def test_change_that_takes_effect(text: str, say: Callable[..., str]) -> None:
    assert say(text) == ""


CASES = [
    pytest.param(
        SPARSE.format(self="grad * beta", mat1=MAT1),
        "derivatives.yaml:2:9: " + NOTHING.format("_sparse_addmm") + "  self: grad * beta\n"
        "        ^~~~~~~~~~~\n"
        "hint: the formula of 'mat1' calls 'mm_mat1_sparse_backward', which torch does not export, so backbind "
        "cannot compile the node\n"
        "      write the formula of 'mat1' with functions that can be called, or write 'mm_mat1_sparse_backward' in "
        "csrc/formulas and list it in codegen/model/helpers.py\n"
        "      or restore torch's formula\n\n1 error\n",
        id="another_formula_cannot_be_compiled",
    ),
    pytest.param(
        SPARSE.format(self=SELF, mat1="2 * " + MAT1),
        "derivatives.yaml:3:9: " + NOTHING.format("_sparse_addmm") + f"  mat1: 2 * {MAT1}\n"
        f"        ^~~~{'~' * len(MAT1)}\n"
        "hint: it calls 'mm_mat1_sparse_backward', which torch does not export, so backbind cannot compile the node\n"
        "      write it with functions that can be called, or write 'mm_mat1_sparse_backward' in csrc/formulas and "
        "list it in codegen/model/helpers.py\n"
        "      or restore torch's formula\n\n1 error\n",
        id="this_formula_cannot_be_compiled",
    ),
    pytest.param(
        "- name: sin(Tensor self) -> Tensor\n  self: angle_backward(grad, self)\n",
        "derivatives.yaml:2:9: " + NOTHING.format("sin") + "  self: angle_backward(grad, self)\n"
        "        ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        "hint: it calls 'angle_backward', which torch does not export, so backbind cannot compile the node\n"
        "      write it with functions that can be called, or write 'angle_backward' in csrc/formulas and list "
        "it in codegen/model/helpers.py\n"
        "      or restore torch's formula\n\n1 error\n",
        id="no_longer_compiled",
    ),
    pytest.param(
        "- name: sin(Tensor self) -> Tensor\n  self: zeros_like(self)\n",
        "derivatives.yaml:2:9: " + NOTHING.format("sin") + "  self: zeros_like(self)\n"
        "        ^~~~~~~~~~~~~~~~\n"
        "hint: it calls 'zeros_like' of a saved tensor, whose code torch does not export, so backbind cannot compile "
        "the node\n"
        "      restore torch's formula\n\n1 error\n",
        id="zeros",
    ),
    pytest.param(
        "- name: sin(Tensor self) -> Tensor\n  self: grad * self.cos().conj()\n  result: self_t * self_p.cos()\n",
        "derivatives.yaml:3:11: notice: this changes nothing: backbind makes backward nodes, and this is a forward "
        "derivative\n  result: self_t * self_p.cos()\n          ^~~~~~~~~~~~~~~~~~~~~\n\n1 notice\n",
        id="forward",
    ),
    pytest.param(
        "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n  self: grad * other\n"
        "  other: mul_tensor_backward(grad, self, other.scalar_type())\n",
        "derivatives.yaml:2:9: notice: '_foreach_mul.Tensor', which is derived from this entry, keeps the formula "
        "that torch was compiled with\n  self: grad * other\n        ^~~~~~~~~~~~\n"
        "hint: 'other' is shared by all elements of a list there, and only torch's own code sums its gradient\n\n"
        "1 notice\n",
        id="derived",
    ),
    pytest.param(
        "- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n  self: grad * other\n",
        "derivatives.yaml:1:9: error: torch's node of 'mul.Tensor' has a gradient for 'other', and this entry has "
        "none\n- name: mul.Tensor(Tensor self, Tensor other) -> Tensor\n"
        "        ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        "hint: which gradients a node gives cannot be changed here, only what they are: the node itself is torch's"
        "\n\n1 error\n",
        id="gradient_missing",
    ),
    pytest.param(
        "- name: index_select(Tensor self, int dim, Tensor index) -> Tensor\n"
        "  self: index_select_backward_symint(grad, self.sym_sizes(), dim, index)\n  index: grad\n",
        "derivatives.yaml:3:3: error: torch's node of 'index_select' has no gradient for 'index'\n  index: grad\n"
        "  ^~~~~\nhint: which gradients a node gives cannot be changed here, only what they are: the node itself is "
        "torch's\n\n1 error\n",
        id="gradient_too_many",
    ),
    pytest.param(
        "- name: sin(Tensor self) -> Tensor\n  dispatch:\n    AutogradCUDA:\n"
        "      self: grad * self.cos().conj()\n    Default:\n      self: grad * self.cos().conj()\n",
        "derivatives.yaml:3:5: error: torch has no backward node of 'sin' for 'AutogradCUDA'\n    AutogradCUDA:\n"
        "    ^~~~~~~~~~~~\n"
        "hint: a change in the YAML alone can change what a node computes, and makes no new ones\n\n1 error\n",
        id="another_key",
    ),
    pytest.param(
        "- name: sin(Tensor self) -> Tensor\n  output_differentiability: [True]\n"
        "  self: grad * self.cos().conj()\n",
        "derivatives.yaml:2:29: error: torch's node of 'sin' was compiled with another 'output_differentiability'\n"
        "  output_differentiability: [True]\n                            ^~~~~~\n"
        "hint: which gradients a node takes cannot be changed here; restore the line\n\n1 error\n",
        id="differentiability",
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_change_that_does_not(text: str, expected: str, say: Callable[..., str]) -> None:
    assert say(text) == expected


def test_where_nothing_is_compiled_no_change_takes_effect(say: Callable[..., str]) -> None:
    text = "- name: sin(Tensor self) -> Tensor\n  self: grad * self.cos()\n"
    assert say(text, compiles_nothing=True) == (
        "derivatives.yaml:2:9: " + NOTHING.format("sin") + "  self: grad * self.cos()\n"
        "        ^~~~~~~~~~~~~~~~~\n"
        "hint: '--mode delegate' compiles no formula, and calls torch's own code for every node\n"
        "      restore torch's formula\n\n1 error\n"
    )


def test_edited_file_is_told_by_the_wheel_s_record(installed_torch: TorchInstall, tmp_path: Path) -> None:
    copied = tmp_path / "torchgen" / "packaged" / "autograd" / "derivatives.yaml"
    copied.parent.mkdir(parents=True)
    shutil.copy2(installed_torch.derivatives_yaml, copied)
    install = TorchInstall(installed_torch.root, tmp_path / "torchgen", installed_torch.version)
    (info,) = installed_torch.torchgen.parent.glob("torch-*.dist-info")
    assert not is_edited(install)
    (tmp_path / info.name).mkdir()
    shutil.copy2(info / "RECORD", tmp_path / info.name)
    assert not is_edited(install)
    with copied.open("a") as file:
        file.write("# a comment\n")
    assert is_edited(install)
