"""What must hold for a node's arguments together: the checks before a functional backward, as C++ statements.

A live node never breaks these, because its forward checked them; an operator can be called with anything. Most checks
follow from the model: as many gradients as outputs, lists as long as the lists that they belong to, dimensions that
exist, tensors that a wanted gradient is computed from. `_OF_OPERATORS` adds what torch's own formulas rely on without
checking it, so that a wrong size would be read past its end.

A check is a call of a member of `Preconditions`. In its text ``$dim`` is the saved value ``dim``: so a check knows
which values it reads, and it is made only where a formula reads them too, because the forward keeps nothing that is not
needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Template

from .. import names
from ..model.node import NodeSpec, SavedValue
from ..parse.expression import Call, Name, walk
from ..parse.schema import parse_schema

_POSITIVE = ("groups", "group", "num_groups", "upscale_factor", "downscale_factor")
"""Numbers that formulas divide by."""

_PER_ELEMENT = ("tensor_list", "scalar_list")
"""Rows with one value for each element of a foreach node's lists."""

_PER_LIST_INPUT = ("scalar_type_list", "integer_lists", "sym_int_lists")
"""Rows with one value for each element of the list input that they are named after."""

_DIMENSIONS = ("integer", "optional_integer", "integer_list", "optional_integer_list", "sym_int_list")
"""Rows that may hold dimensions."""

_MAY_RETURN_NOTHING = re.compile("attention|rnn|lstm|gru|cudnn|miopen|mkldnn")
"""Operators some of whose results are not always there."""

_SAMPLER_MODES = (
    'between("interpolation_mode", $interpolation_mode, 0, 2)',
    'between("padding_mode", $padding_mode, 0, 2)',
)
_GRID_SAMPLER = ('sampled({"grads", grads[0]}, {"input", $input}, {"grid", $grid})', *_SAMPLER_MODES)
_GRID_SAMPLER_BACKWARD = (
    'gradient_sizes(grads, 0, {"input", $input})',
    'gradient_sizes(grads, 1, {"grid", $grid})',
    'sampled({"grad_output", $grad_output}, {"input", $input}, {"grid", $grid})',
    *_SAMPLER_MODES,
)
_POINTS = 'points({"grid", $grid}, {"input", $input}, $interpolation_mode, $padding_mode)'

_BATCH_NORMS: Mapping[str, str] = {
    "native_batch_norm": "$training",
    "_native_batch_norm_legit": "$training",
    "_native_batch_norm_legit_no_training": "false",
    "_batch_norm_with_update": "true",
    "_batch_norm_no_update": "false",
    "cudnn_batch_norm": "$training",
    "miopen_batch_norm": "$training",
}
"""Batch normalisations, and how each says that it is training: the statistics that are read depend on it."""

_OF_OPERATORS: Mapping[str, tuple[str, ...]] = {
    "native_layer_norm": (
        'gradient_sizes(grads, 0, {"input", $input})',
        'layer_norm({"input", $input}, $normalized_shape, {{"result1", $result1}, {"result2", $result2}}, '
        '{{"weight", $weight}, {"bias", $bias}})',
    ),
    "native_layer_norm_backward": (
        'layer_norm({"input", $input}, $normalized_shape, {{"mean", $mean}, {"rstd", $rstd}}, {{"weight", $weight}})',
        'same_sizes({"grad_out", $grad_out}, {"input", $input})',
    ),
    "native_group_norm": (
        'gradient_sizes(grads, 0, {"input", $input})',
        'element_count($N * $C * $HxW, {{"input", $input}})',
        'element_count($C, {{"weight", $weight}})',
        'element_count($N * $group, {{"result1", $result1}, {"result2", $result2}})',
    ),
    "cat": ('joined_along("dim", $dim, $tensors_args_sizes_symint)',),
    "repeat": ("repeated(grads, $repeats, $self_sym_sizes)",),
    "expand": ("expanded(grads, $self_sym_sizes)",),
    "_cdist_forward": ('distances(grads, {"x1", $x1}, {"x2", $x2}, {"result", $result})',),
    **dict.fromkeys(
        ("_fft_r2c", "_fft_c2r"),
        (
            'length_at_least("dim", $dim.size(), 1)',
            'distinct_dims("dim", $dim, gradient_rank(grads, 0))',
        ),
    ),
    "_fft_c2c": ('transformed_dims("dim", $dim, gradient_rank(grads, 0))',),
    "_prelu_kernel": ('gradient_sizes(grads, 0, {"self", $self})',),
    **dict.fromkeys(
        ("_softmax", "_log_softmax", "_masked_softmax"),
        ('gradient_sizes(grads, 0, {"result", $result})',),
    ),
    **dict.fromkeys(
        ("amax", "amin"),
        (
            'reduced("dim", $dim, $keepdim, {"grads", grads[0]})',
            'reduced("dim", $dim, $keepdim, {"result", $result})',
        ),
    ),
    "aminmax": (
        'reduced("dim", $dim, $keepdim, {"grads", grads[0]})',
        'reduced("dim", $dim, $keepdim, {"grads", grads[1]})',
        'reduced("dim", $dim, $keepdim, {"min", $min})',
        'reduced("dim", $dim, $keepdim, {"max", $max})',
    ),
    "as_strided": ('gradient_sizes(grads, 0, "size", $size)',),
    "as_strided_": ('gradient_sizes(grads, 0, "size", $size)',),
    "_scaled_dot_product_flash_attention_for_cpu": (
        'attention(grads, {"query", $query}, {"key", $key}, {"value", $value}, {"output", $output}, '
        '{"logsumexp", $logsumexp})',
    ),
    "_adaptive_avg_pool2d": ('pooled(grads, 2, {"self", $self}, {"indices", Tensor()})',),
    "_adaptive_avg_pool3d": ('pooled(grads, 3, {"self", $self}, {"indices", Tensor()})',),
    **dict.fromkeys(
        ("adaptive_max_pool2d", "max_pool2d_with_indices"),
        ('pooled(grads, 2, {"self", $self}, {"result1", $result1})',),
    ),
    **dict.fromkeys(
        ("adaptive_max_pool3d", "max_pool3d_with_indices"),
        ('pooled(grads, 3, {"self", $self}, {"result1", $result1})',),
    ),
    "fractional_max_pool2d": (
        'pooled(grads, 2, {"self", $self}, {"result1", $result1})',
        'contiguous({"result1", $result1})',
    ),
    "fractional_max_pool3d": (
        'pooled(grads, 3, {"self", $self}, {"result1", $result1})',
        'contiguous({"result1", $result1})',
    ),
    **dict.fromkeys(
        (f"{kind}_pad{spatial}d" for kind in ("reflection", "replication") for spatial in (1, 2, 3)),
        ('padded(grads, $padding, {"self", $self})',),
    ),
    "grid_sampler_2d": (*_GRID_SAMPLER, _POINTS),
    **dict.fromkeys(("_grid_sampler_2d_cpu_fallback", "grid_sampler_3d"), _GRID_SAMPLER),
    **dict.fromkeys(
        ("grid_sampler_2d_backward", "_grid_sampler_2d_cpu_fallback_backward"),
        (*_GRID_SAMPLER_BACKWARD, _POINTS),
    ),
    "grid_sampler_3d_backward": _GRID_SAMPLER_BACKWARD,
    "multi_margin_loss": (
        'margin_loss(grads, $reduction, {"self", $self}, {"target", $target}, {"weight", $weight})',
    ),
    "multilabel_margin_loss_forward": (
        'multilabel_loss(grads, $reduction, {"self", $self}, {"target", $target}, {"is_target", $is_target})',
    ),
    "nll_loss_forward": ('classes({"target", $target}, {"self", $self}, -1, $ignore_index)',),
    "nll_loss2d_forward": ('classes({"target", $target}, {"self", $self}, 1, $ignore_index)',),
    "segment_reduce": (
        'segments(grads, {"data", $data}, $axis, {"lengths", $lengths}, {"offsets", $offsets}, {"result", $result})',
    ),
    "_ctc_loss": (
        'ctc(grads, {"log_probs", $log_probs}, {"targets", $targets}, $input_lengths, $target_lengths, $blank, '
        '{"result0", $result0}, {"result1", $result1})',
    ),
    "_embedding_bag": (
        'bags(grads, {"indices", $indices}, {"offsets", $offsets}, {"result1", $result1})',
        'bag_gradient(grads, {"indices", $indices}, $weight_sym_argsize_0, $mode, {"result2", $result2}, '
        '{"result3", $result3}, {"per_sample_weights", $per_sample_weights})',
        'rows({"indices", $indices}, {"weight", $weight})',
    ),
    **dict.fromkeys(
        ("_linalg_solve_ex", "_linalg_det", "_linalg_slogdet", "linalg_lu_solve", "linalg_lu_factor_ex"),
        ('pivots({"pivots", $pivots}, {"LU", $LU})',),
    ),
    "_weight_norm_interface": ('weight_norm(grads, {"v", $v}, $dim, {"g", $g}, {"result1", $result1})',),
    "_pack_padded_sequence": ('readable({"result1", $result1})',),
    "unfold": ("unfolded(grads, $self_sym_sizes, $dimension, $size, $step)",),
    "_fused_rms_norm": (
        'gradient_sizes(grads, 0, {"input", $input})',
        'layer_norm({"input", $input}, c10::fromIntArrayRefSlow($normalized_shape), {{"result1", $result1}}, '
        '{{"weight", $weight}})',
    ),
    "lu_unpack": ('rank_at_least({"grads", grads[0]}, 2)', 'rank_at_least({"grads", grads[1]}, 2)'),
    "_pdist_forward": ('pair_distances(grads, {"self", $self}, {"result", $result})',),
    "_thnn_fused_lstm_cell": (
        'gates({"input_gates", $input_gates}, 4, {"cx", $cx})',
        'gates({"hidden_gates", $hidden_gates}, 4, {"cx", $cx})',
    ),
    "_thnn_fused_gru_cell": (
        'gates({"input_gates", $input_gates}, 3, {"hx", $hx})',
        'gates({"hidden_gates", $hidden_gates}, 3, {"hx", $hx})',
    ),
    **dict.fromkeys(
        ("split", "unsafe_split"),
        ('length_at_least("self_sym_sizes", $self_sym_sizes.size(), 1)',),
    ),
    **dict.fromkeys(
        ("split_with_sizes", "unsafe_split_with_sizes"),
        (
            'length_at_least("self_sym_sizes", $self_sym_sizes.size(), 1)',
            'same_length("split_sizes", $split_sizes.size(), "grads", grads.size())',
        ),
    ),
}
"""By the operator's name without overload: calls of Preconditions over the node's arguments."""


def check_statements(node: NodeSpec) -> tuple[str, ...]:
    """The checks of one node, in the order in which they are made; ``check`` is a Preconditions of the node."""
    calls = [
        *_gradient_count(node),
        *_list_lengths(node),
        *_fixed_lengths(node),
        *_numbers(node),
        *_defined(node),
        *_of_operator(node),
    ]
    return tuple(_statement(node, Template(call)) for call in calls)


def _statement(node: NodeSpec, call: Template) -> str:
    """The call as a statement, made only where every saved value in it is read."""
    saved = {one.name: one for one in node.saved}
    read = [saved[name] for name in call.get_identifiers()]
    code = call.substitute({one.name: names.argument(one.name) for one in read})
    conditions = list(dict.fromkeys(filter(None, (_read_condition(node, one) for one in read))))
    if not conditions:
        return f"check.{code};"
    parts = [f"({one})" if "||" in one and len(conditions) > 1 else one for one in conditions]
    return f"if ({' && '.join(parts)}) check.{code};"


def _read_condition(node: NodeSpec, saved: SavedValue) -> str:
    """When a formula that reads ``saved`` is evaluated; empty for the length of a list, which is always kept."""
    if saved.type.key == "list_size":
        return ""
    positions = [one.name for one in node.inputs]
    readers = {
        positions.index(name)
        for formula in node.formulas
        if formula.parsed.uses(saved.name)
        for name in formula.inputs
    }
    return " || ".join(f"needs_input_grad[{position}]" for position in sorted(readers))


def _gradient_count(node: NodeSpec) -> Iterator[str]:
    if node.is_per_element:
        yield f"gradient_count(grads, {_first_size(node)})"
    elif node.gradient_count is not None:
        yield f"gradient_count(grads, {node.gradient_count})"


def _first_size(node: NodeSpec) -> str | None:
    return next(one.size_name for one in node.inputs if one.is_list)


def _list_lengths(node: NodeSpec) -> Iterator[str]:
    """Lists that have one value for each element of a list of tensors."""
    lists = [one for one in node.inputs if one.is_list]
    if node.is_per_element:
        size = _first_size(node)
        for one in lists[1:]:
            yield f'list_length("{one.size_name}", {one.size_name}, {size})'
        for saved in node.saved:
            if saved.type.key in _PER_ELEMENT:
                yield _list_length(saved, size)
    for saved in node.saved:
        owner = next((one for one in lists if saved.name.startswith(f"{one.name}_args_")), None)
        if owner is not None and saved.type.key in _PER_LIST_INPUT:
            yield _list_length(saved, owner.size_name)
    yield from _sizes_with_strides(node)


def _list_length(saved: SavedValue, size: str | None) -> str:
    return f'list_length("{saved.arguments[-1].name}", ${saved.name}.size(), {size})'


def _sizes_with_strides(node: NodeSpec) -> Iterator[str]:
    """Sizes and strides of one tensor, saved side by side."""
    by_name = {saved.name: saved for saved in node.saved if saved.type.key == "sym_int_list"}
    by_layout = {saved.name: saved for saved in node.saved if saved.type.key == "layout"}
    for name, sizes in by_name.items():
        strides = by_name.get(re.sub(r"size(s?)$", r"stride\1", name), sizes)
        if strides is not sizes:
            layout = by_layout.get(name.replace("sym_sizes", "layout"))
            if layout is None:
                yield _same_length(sizes, strides)
            else:  # a sparse tensor has sizes only
                yield f"strides({_named_length(sizes)}, {_named_length(strides)}, ${layout.name})"
            if "mm" in node.operator:  # a matrix, or a batch of them
                yield f'length_at_least("{name}", ${sizes.name}.size(), 2)'


def _same_length(first: SavedValue, second: SavedValue) -> str:
    return f"same_length({_named_length(first)}, {_named_length(second)})"


def _named_length(saved: SavedValue) -> str:
    return f'"{saved.name}", ${saved.name}.size()'


def _fixed_lengths(node: NodeSpec) -> Iterator[str]:
    """Lists of numbers whose length the forward's schema fixes, as in ``int[2] stride``."""
    for saved in node.saved:
        if saved.type.key not in ("integer_list", "sym_int_list") or saved.expression != saved.name:
            continue
        # int[1] only says that a single number may stand for a list.
        found = re.search(rf"[iI]nt\[([2-9])\] {re.escape(saved.name)}(=\[\])?(?!\w)", node.forward_schema)
        if found is not None:
            single = "false" if "pad" in node.operator else "true"
            # Without strides a pooling takes the size of its window; its backwards have no default that says so.
            empty = "true" if found[2] or (saved.name == "stride" and "pool" in node.operator) else "false"
            yield f'fixed_length("{saved.name}", ${saved.name}.size(), {found[1]}, {single}, {empty})'


def _numbers(node: NodeSpec) -> Iterator[str]:
    rank = _rank(node)
    for saved in node.saved:
        if saved.name in _POSITIVE and saved.type.key in ("integer", "sym_int"):
            yield f'positive("{saved.name}", ${saved.name})'
        if rank is not None and saved.name == "dim" and saved.type.key in _DIMENSIONS:
            yield f'dim("dim", ${saved.name}, {rank})'


def _rank(node: NodeSpec) -> str | None:
    """The number of dimensions of the forward's first input, if the node keeps it."""
    for saved in node.saved:
        if saved.name == "self_dim" and saved.type.key == "integer":
            return "$self_dim"
        if saved.name == "self" and saved.type.key == "tensor":
            return "$self.dim()"
        if saved.name == "self_sym_sizes" and saved.type.key == "sym_int_list":
            return "static_cast<int64_t>($self_sym_sizes.size())"
    return None


def _defined(node: NodeSpec) -> Iterator[str]:
    """Tensors that the formula of a wanted gradient reads, where the forward always has them."""
    types = {one.name: one.type for one in parse_schema(node.forward_schema).arguments}
    conditional = _kept_on_condition(node)
    for saved in node.saved:
        if saved.type.key != "tensor" or saved.name in conditional or not _read_condition(node, saved):
            continue
        if saved.from_output:
            if _MAY_RETURN_NOTHING.search(node.operator):
                continue
        elif types.get(saved.expression) != "Tensor":
            continue
        yield f'defined(grads, {{"{saved.name}", ${saved.name}}})'


def _kept_on_condition(node: NodeSpec) -> frozenset[str]:
    """Tensors inside ``wrap_opt_if``: the forward keeps them only for some of the wanted gradients."""
    return frozenset(
        expression.arguments[0].path[-1]
        for formula in node.formulas
        for expression, _, _ in walk(formula.parsed.root)
        if isinstance(expression, Call)
        and isinstance(expression.function, Name)
        and expression.function.path[-1] == "wrap_opt_if"
        and isinstance(expression.arguments[0], Name)
    )


def _of_operator(node: NodeSpec) -> Iterator[str]:
    operator = node.operator.partition(".")[0]
    if node.origin == "view_copy":
        operator = operator.removesuffix("_copy")
    if node.origin == "foreach" or node.dispatch_key != "Default":
        return  # their formulas are others
    if operator in _BATCH_NORMS:
        yield _batch_norm(node, _BATCH_NORMS[operator])
    yield from _OF_OPERATORS.get(operator, ())


def _batch_norm(node: NodeSpec, training: str) -> str:
    saved = {one.name for one in node.saved}
    groups = (("weight",), ("result1", "result2"), ("running_mean", "running_var"))
    named = (
        ", ".join(f'{{"{name}", {f"${name}" if name in saved else "Tensor()"}}}' for name in group)
        for group in groups
    )
    return f'batch_norm(grads, {training}, {{"input", $input}}, {", ".join(f"{{{one}}}" for one in named)})'
