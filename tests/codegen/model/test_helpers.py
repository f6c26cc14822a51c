"""The table of our helpers against the header that declares them and against torch's."""

from __future__ import annotations

import re

from codegen.model.helpers import HELPERS
from codegen.torch_install.cpp_declarations import find_declarations
from codegen.torch_install.exports import callable_helpers
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.vocabulary import HELPERS_NAMESPACE
from tests.conftest import REPOSITORY

_HEADER = REPOSITORY / "csrc" / "formulas" / "formulas.h"


def _parameters(header: str, name: str) -> list[str]:
    """The parameter lists of a function's declarations."""
    return re.findall(rf"\b{name}\(([^;]*)\);", header)


def test_the_table_lists_what_the_header_declares() -> None:
    declared = find_declarations(_HEADER.read_text()).functions
    assert {name.rpartition("::")[2] for name in declared} == set(HELPERS)


def test_every_helper_stands_in_for_one_that_torch_keeps_to_itself(installed_torch: TorchInstall) -> None:
    declared = find_declarations(installed_torch.helpers_header.read_text()).functions
    torch_has = {name.removeprefix(f"{HELPERS_NAMESPACE}::") for name in declared}
    assert set(HELPERS) - torch_has == set()
    assert set(HELPERS) & callable_helpers(installed_torch) == set()


def test_an_argument_that_may_be_returned_is_a_tensor() -> None:
    header = _HEADER.read_text()
    for name, helper in HELPERS.items():
        if helper.returned is None:
            continue
        for parameters in _parameters(header, name):
            assert "at::Tensor" in parameters.split(",")[helper.returned], name
