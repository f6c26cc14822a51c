"""The only module that builds identifiers. Each function maps one thing to the name it has in one language."""

from __future__ import annotations

import keyword
import zlib

NAMESPACE = "backbind"
"""Namespace of the operators of torch in the dispatcher, and of their C++ code."""

OPERATORS_MODULE = "backbind.ops"
"""The Python module of these operators."""

GRADIENTS = "grads"
NEEDS_INPUT_GRAD = "needs_input_grad"

_TAKEN = frozenset({GRADIENTS, NEEDS_INPUT_GRAD})


def node_stem(operator: str, key: str) -> str:
    """Maps an operator and a dispatch key to the name of its nodes without their number.

    A letter after a digit is large: that is how torch spells them.

    >>> node_stem("log1p", "Default"), node_stem("_foreach_pow", "Default"), node_stem("mul_", "AutogradCUDA")
    ('Log1PBackward', 'ForeachPowBackward', 'MulBackwardAutogradCUDA')
    >>> node_stem("_flash_forward", "Default")
    'FlashBackward'
    """
    camel = "".join(part.title() for part in operator.split("_"))
    stem = f"{camel}Backward".replace("ForwardBackward", "Backward")
    return stem if key == "Default" else stem + key


def view_copy_node(node: str) -> str:
    """Maps the node of a view to that of the view's copying form.

    >>> view_copy_node("ExpandBackward0")
    'ExpandBackward0_copy'
    """
    return f"{node}_copy"


def foreach_node(node: str, overload: str) -> str:
    """Maps a node to that of an operator over lists, of that overload, which is derived from it.

    >>> foreach_node("AddBackward0", "List")
    'ForeachAddBackward0List'
    """
    return f"Foreach{node}{overload}"


def saved_attribute(tensor: str, suffix: str) -> str:
    """Maps a tensor and what is read of it to the saved value.

    >>> saved_attribute("self", "sym_sizes")
    'self_sym_sizes'
    """
    return f"{tensor}_{suffix}"


def named_gradient(result: str) -> str:
    """Maps a result to what formulas call its gradient.

    >>> named_gradient("values")
    'grad_values'
    """
    return f"grad_{result}"


def argument(saved_name: str, suffix: str = "") -> str:
    """Maps a saved value (and the suffix of a component) to the name of an operator argument.

    >>> argument("self_options", "_dtype")
    'self_options_dtype'
    >>> argument("lambda")
    'lambda_'
    >>> argument("grads")
    'grads_'
    """
    name = saved_name + suffix
    return f"{name}_" if name in _TAKEN or keyword.iskeyword(name) else name


def field(saved_name: str, is_tensor: bool) -> str:
    """Maps a saved value to the field of the node struct.

    >>> field("self", True), field("alpha", False)
    ('self_', 'alpha')
    """
    return f"{saved_name}_" if is_tensor else saved_name


def released_flag(saved_name: str) -> str:
    """Maps a saved list of tensors to the field that tells whether it was released.

    >>> released_flag("tensors")
    'tensors_released_'
    """
    return f"{saved_name}_released_"


def list_size(input_name: str) -> str:
    """Maps a differentiable list argument to the saved value that keeps its length.

    >>> list_size("tensors")
    'tensors_size'
    """
    return f"{input_name}_size"


def list_size_field(input_name: str) -> str:
    """Maps a differentiable list argument to the field that keeps its length.

    >>> list_size_field("tensors")
    'tensors_size_'
    """
    return f"{input_name}_size_"


def formulas(node: str) -> str:
    """Maps an inline node to the function that holds its formulas.

    >>> formulas("TanhBackward0")
    'TanhBackward0_formulas'
    """
    return f"{node}_formulas"


def step(node: str) -> str:
    """Maps an inline node to the function that runs a live one.

    >>> step("TanhBackward0")
    'TanhBackward0_step'
    """
    return f"{node}_step"


def edge_count(node: str) -> str:
    """Maps a node whose inputs are lists to the function that tells how many edges a live one has.

    >>> edge_count("CatBackward0")
    'CatBackward0_edge_count'
    """
    return f"{node}_edge_count"


def step_operators(node: str) -> str:
    """Maps an inline node to the list of operators that a step of it calls.

    >>> step_operators("TanhBackward0")
    'TanhBackward0_step_operators'
    """
    return f"{node}_step_operators"


def apply_functional(node: str) -> str:
    """Maps a node to its functional backward with typed arguments.

    >>> apply_functional("MulBackward0")
    'MulBackward0_apply_functional'
    """
    return f"{node}_apply_functional"


def apply_functional_ivalue(node: str) -> str:
    """Maps a node to its functional backward over IValues.

    >>> apply_functional_ivalue("MulBackward0")
    'MulBackward0_apply_functional_ivalue'
    """
    return f"{node}_apply_functional_ivalue"


def apply_delegate(node: str) -> str:
    """Maps a node to the delegate that an inline functional backward is compared with.

    >>> apply_delegate("MulBackward0")
    'MulBackward0_apply_delegate'
    """
    return f"{node}_apply_delegate"


def apply_delegate_ivalue(node: str) -> str:
    """Maps a node to the same delegate over IValues.

    >>> apply_delegate_ivalue("MulBackward0")
    'MulBackward0_apply_delegate_ivalue'
    """
    return f"{node}_apply_delegate_ivalue"


def pack(node: str) -> str:
    """Maps a node to the function that reads its saved values off a live node.

    >>> pack("MulBackward0")
    'MulBackward0_pack'
    """
    return f"{node}_pack"


def saved_kinds(node: str) -> str:
    """Maps a node to the list of its arguments' kinds.

    >>> saved_kinds("MulBackward0")
    'MulBackward0_arguments'
    """
    return f"{node}_arguments"


def line_macro(node: str, inputs: tuple[str, ...]) -> str:
    """Maps a formula to the macro that holds its line in the YAML.

    >>> line_macro("MulBackward0", ("self", "other"))
    'BACKBIND_LINE_MulBackward0_self_other'
    """
    return "_".join(("BACKBIND_LINE", node, *inputs))


def area_module(area: str) -> str:
    """Maps an area to its module below ``backbind.ops._areas``.

    >>> area_module("linear-algebra")
    'linear_algebra'
    """
    return area.replace("-", "_")


def area_file(area: str, suffix: str) -> str:
    """Maps an area to the generated file of its module: the records with ``.py``, the stubs with ``.pyi``.

    >>> area_file("linear-algebra", ".pyi")
    'python/ops/_areas/linear_algebra.pyi'
    """
    return f"python/ops/_areas/{area_module(area)}{suffix}"


def shard_index(node: str, shards: int) -> int:
    """Maps a node to its shard: by a checksum, so that a new node moves no other.

    >>> shard_index("MulBackward0", 8) == shard_index("MulBackward0", 8)
    True
    """
    return zlib.crc32(node.encode()) % shards


def shard(index: int) -> str:
    """Maps a shard's number to its file name without an ending.

    >>> shard(3)
    'nodes_3'
    """
    return f"nodes_{index}"
