"""Programs from the lists of operators that torch tests itself with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any
from unittest import SkipTest

import torch
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
    op_db,
)
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

from tests.oracle.programs import DTYPES, Forward, Program, Sample, sample_of_call

_FOREACH = [
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
]

_FOREACH_SETTINGS = {
    "requires_grad": True,
    "noncontiguous": False,
    "allow_higher_dtype_scalars": True,
    # Lengths of the lists: torch's own are 20 and more, for the sake of its kernels.
    "num_input_tensors": [1, 4],
}

_ONE_IN = {torch.float32: 4, torch.complex128: 2}
"""Of so many samples one is taken, spread over all of them. Dtypes that are not here have all: what a node does depends
on the sample, and what its kernels do on the dtype."""

_ONE_IN_NESTED = 4
"""The same for nested tensors, on which operators of one kind have the same samples."""

_CRASHES_NESTED = ("split_with_sizes",)
"""Whose nodes torch 2.13 cannot run on jagged tensors: the formula takes them for the other kind, and crashes."""

_SPARSE_LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def dtypes_of(supported: Iterable[torch.dtype]) -> list[torch.dtype]:
    """The dtypes to try: ours, or one that has a gradient if the operator takes none of ours."""
    differentiable = [dtype for dtype in supported if dtype.is_floating_point or dtype.is_complex]
    return [dtype for dtype in DTYPES if dtype in differentiable] or sorted(differentiable, key=str)[:1]


def dense_programs() -> list[Program]:
    """Every operator of op_db."""
    return _programs("op", op_db, dtypes_of, _dense_samples)


def foreach_programs() -> list[Program]:
    """Every operator on lists of tensors."""
    return _programs("foreach", _FOREACH, dtypes_of, _foreach_samples)


def sparse_programs() -> list[Program]:
    """Operators on tensors of each sparse layout."""
    return [
        program
        for layout in _SPARSE_LAYOUTS
        for program in _programs(
            str(layout).removeprefix("torch."),
            [op for op in op_db if _has_samples(op, layout)],
            lambda supported: [dtype for dtype in dtypes_of(supported) if dtype != torch.float32],
            partial(_sparse_samples, layout),
            one_in={},
        )
    ]


def nested_programs() -> list[Program]:
    """Operators on nested tensors."""
    return _programs(
        "nested",
        [op for op in njt_op_db if op.supports_njt and op.name not in _CRASHES_NESTED],
        lambda supported: [dtype for dtype in dtypes_of(supported) if dtype == torch.float64],
        lambda op, dtype: _calls(op.op, op.sample_inputs("cpu", dtype, requires_grad=True)),
        one_in={torch.float64: _ONE_IN_NESTED},
    )


def module_programs() -> list[Program]:
    """Every module of torch.nn, in training and in evaluation."""
    programs = []
    for info in module_db:
        for dtype in dtypes_of(info.dtypes):
            for training in (True, False):
                name = f"{info.name}-{'training' if training else 'evaluation'}-{_short(dtype)}"
                programs.append(
                    Program(
                        "module",
                        name,
                        partial(_module_samples, info, dtype, training),
                    )
                )
    return programs


def _programs(
    source: str,
    operators: Iterable[OpInfo],
    choose: Callable[[Iterable[torch.dtype]], list[torch.dtype]],
    samples: Callable[[OpInfo, torch.dtype], Iterable[Sample]],
    one_in: Mapping[torch.dtype, int] = _ONE_IN,
) -> list[Program]:
    def some(op: OpInfo, dtype: torch.dtype) -> Iterator[Sample]:
        return islice(samples(op, dtype), 0, None, one_in.get(dtype, 1))

    return [
        Program(source, f"{op.formatted_name}-{_short(dtype)}", partial(some, op, dtype))
        for op in operators
        for dtype in choose(op.dtypes)
    ]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _calls(function: Callable[..., object], inputs: Iterable[Any]) -> Iterator[Sample]:
    for one in inputs:
        yield sample_of_call(function, (one.input, *one.args), one.kwargs)


def _dense_samples(op: OpInfo, dtype: torch.dtype) -> Iterator[Sample]:
    in_place = op.inplace_variant
    for one in op.sample_inputs("cpu", dtype, requires_grad=True):
        args = (one.input, *one.args)
        plain = sample_of_call(op.op, args, one.kwargs)

        def variations(
            plain: Sample = plain, args: tuple[Any, ...] = args, kwargs: dict[str, Any] = one.kwargs
        ) -> Iterator[Forward]:
            yield from plain.variations()
            if in_place is not None:
                yield lambda: in_place(args[0].clone(), *args[1:], **kwargs)

        yield Sample(plain.forward, variations)


def _foreach_samples(op: OpInfo, dtype: torch.dtype) -> Iterator[Sample]:
    in_place = op.inplace_variant
    for one in op.sample_inputs("cpu", dtype, **_FOREACH_SETTINGS):
        if op.method_variant is not None:
            yield sample_of_call(op.method_variant, (one.input, *one.args), one.kwargs)
        if in_place is not None:
            yield sample_of_call(
                lambda first, *rest, **kwargs: _on_copies(in_place, first, *rest, **kwargs),
                (one.input, *one.args),
                one.kwargs,
            )


def _on_copies(
    in_place: Callable[..., object], first: list[torch.Tensor], *rest: Any, **kwargs: Any
) -> object:
    copies = [tensor.clone() for tensor in first]
    in_place(copies, *rest, **kwargs)
    return copies


def _sparse_samples(layout: torch.layout, op: OpInfo, dtype: torch.dtype) -> Iterator[Sample]:
    # Torch's generators end by skipping the test if there was no sample.
    with suppress(SkipTest):
        yield from _calls(op.op, op.sample_inputs_sparse(layout, "cpu", dtype, requires_grad=True))


def _has_samples(op: OpInfo, layout: torch.layout) -> bool:
    name = str(layout).removeprefix("torch.")
    function = getattr(op, f"sample_inputs_{name}_func")
    return getattr(function, "__name__", "") != op._sample_inputs_unspecified.__name__


def _module_samples(info: ModuleInfo, dtype: torch.dtype, training: bool) -> Iterator[Sample]:
    for one in info.module_inputs_func(
        info, device="cpu", dtype=dtype, requires_grad=True, training=training
    ):
        construct, forward = one.constructor_input, one.forward_input
        if forward is None:
            continue
        module = info.module_cls(*construct.args, **construct.kwargs).to(dtype).train(training)
        yield Sample(partial(module, *forward.args, **forward.kwargs))
