"""The C++ types of arguments and results are those of torchgen, for every operator of torch."""

from __future__ import annotations

import pytest

from codegen.model.saved_types import SAVED_TYPES, saved_type_of
from codegen.resolve.formula import values_of
from codegen.resolve.forward_types import ARGUMENT_TYPES, RESULT_TYPES, forward_type
from codegen.resolve.records import Value
from codegen.torch_install.locate import TorchInstall
from codegen.torch_install.operators import Operators


def test_types_of_every_operator(operators: Operators, installed_torch: TorchInstall) -> None:
    from torchgen.api import cpp
    from torchgen.context import native_function_manager
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd.load_derivatives import cpp_arguments

    parsed = parse_native_yaml(str(installed_torch.native_functions_yaml), str(installed_torch.tags_yaml))
    differences = []
    met = set()
    for function in parsed.native_functions:
        operator = operators.by_schema.get(str(function.func))
        if operator is None or operator.schema.is_out:
            continue
        with native_function_manager(function):
            theirs = {
                one.name: one.nctype.type.remove_const_ref().cpp_type() for one in cpp_arguments(function)
            }
            results = [cpp.return_type(one, symint=True).remove_const_ref() for one in function.func.returns]
        theirs |= dict(zip(operator.schema.output_names, (one.cpp_type() for one in results), strict=True))
        for value in values_of(operator.schema).values():
            ours = forward_type(value)
            if ours is not None and ours != theirs[value.name]:
                differences.append((operator.schema.full_name, value, theirs[value.name]))
            met.add((value.type, value.is_output))
    # The one operator that takes a list by an interface; what it saves of the list is a list all the same.
    assert differences == [("cat", Value("tensors", "Tensor[]", False), "at::ITensorListRef")]
    assert {type_ for type_, is_output in met if not is_output} >= ARGUMENT_TYPES.keys()


@pytest.mark.parametrize("types", [ARGUMENT_TYPES, RESULT_TYPES], ids=["arguments", "results"])
def test_every_type_can_be_saved(types: dict[str, str]) -> None:
    rows = {saved_type_of(cpp_type).key for cpp_type in types.values()}
    assert rows <= {row.key for row in SAVED_TYPES}
