"""Makes calls of operators that are wrong in some way, and makes them in a process of its own.

``python -m tests.ops.wrong_calls --seed 7 --count 100 --journal FILE`` writes each call into the journal before
it makes it, and how it ended behind it, so that the caller knows which call ended the process.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import backbind
import torch
from backbind._operator import FunctionalOperator
from torch import Tensor

from tests.ops.node_set import NODE_SET

_MEMORY = 6 << 30
"""Bytes of address space beyond which an allocation fails, so that no call can exhaust the machine."""

_SHAPES = (
    (),
    (0,),
    (1,),
    (3,),
    (4,),
    (2, 3),
    (3, 2),
    (3, 3),
    (0, 3),
    (2, 3, 4),
    (1, 2, 4, 4),
    (2, 3, 0, 2),
    (1, 2, 3, 3, 3),
)
_DTYPES = (
    *(torch.float64,) * 6,
    *(torch.float32,) * 4,
    *(torch.int64,) * 3,
    *(torch.bool, torch.complex64, torch.bfloat16, torch.uint8, torch.int32, torch.float16),
)
_WEIRD_INTS = (0, 1, -1, 2, -2, 3, 5, 64, -64, 2**31, -(2**31) - 1, 2**40, 2**62, 2**63 - 1, -(2**63))
_FLOATS = (0.0, 0.5, 1.0, -1.0, 2.0, 1e308, -0.0, float("inf"), float("-inf"), float("nan"))
_WRONG_TYPES: tuple[object, ...] = (
    "text",
    b"bytes",
    object(),
    {},
    {1},
    [[]],
    [None],
    [object()],
    1.5,
    2**70,
    ...,
    int,
    None,
)
_MKLDNN: torch.layout = torch.ones(1).to_mkldnn().layout
_TEXTS = ("", "none", "tanh", "sum", "mean", "reduced", "floor", "trunc", "ß∂", "a\0b", "x" * 300)


@dataclass(frozen=True)
class Call:
    """One call, and what it is called with in words."""

    operator: FunctionalOperator
    arguments: list[Any]
    keywords: dict[str, Any]

    def describe(self) -> str:
        parts = [describe(one) for one in self.arguments]
        parts += [f"{name}={describe(one)}" for name, one in self.keywords.items()]
        return f"{self.operator.name}({', '.join(parts)})"


class CallMaker:
    """Makes calls from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._operators = list(backbind.ops)

    def make(self) -> Call:
        kind = self._random.choices(("values", "real", "form"), (5, 4, 2))[0]
        if kind == "real":
            return self._real()
        call = self._values()
        return self._deform(call) if kind == "form" else call

    def _values(self) -> Call:
        """Arguments of the right types that need not fit together."""
        operator = self._random.choice(self._operators)
        shape, dtype = self._random.choice(_SHAPES), self._random.choice(_DTYPES)
        tensors = self._random.choice((self._tensor, self._plain_tensor, lambda: self._alike(shape, dtype)))
        count = len(operator.outputs) if self._random.random() < 0.9 else self._random.randrange(4)
        size = self._random.randrange(4)
        if operator.record.origin == "foreach":
            count = size
        return Call(
            operator,
            [
                [tensors() if self._random.random() < 0.8 else None for _ in range(count)],
                [self._random.random() < 0.8 for _ in operator.inputs],
                *(self._value(one.schema_type, one.name, tensors, size) for one in operator.saved),
            ],
            {},
        )

    def _real(self) -> Call:
        """What a live node saved, with one or two values changed."""
        made = self._random.choice(NODE_SET).make()
        arguments: list[Any] = [list(made.grads), *made.packed]
        types = ["Tensor?[]", "mask", *(one.schema_type for one in made.operator.saved)]
        for _ in range(self._random.randint(1, 2)):
            position = self._random.randrange(len(arguments))
            if types[position] != "mask":
                size = self._random.randrange(4)
                arguments[position] = self._value(types[position], "", self._tensor, size)
        return Call(made.operator, arguments, {})

    def _deform(self, call: Call) -> Call:
        """Break the form of a call: its number of arguments, its keywords, or a type."""
        arguments = list(call.arguments)
        deformation = self._random.randrange(6)
        position = self._random.randrange(len(arguments))
        if deformation == 0:
            return Call(call.operator, arguments[:position], {})
        if deformation == 1:
            return Call(call.operator, [*arguments, *[None] * self._random.randint(1, 3)], {})
        if deformation == 2:
            return Call(
                call.operator, arguments, {self._random.choice(("grads", "selff", "zzz", "grad")): None}
            )
        if deformation == 3:
            arguments[1] = [True] * self._random.choice((0, len(arguments[1]) + 1, 64))
        else:
            arguments[position] = self._random.choice(_WRONG_TYPES)
        return Call(call.operator, arguments, {})

    def _value(self, schema_type: str, name: str, tensors: Callable[[], Tensor], size: int) -> object:
        if schema_type.endswith("?") and self._random.random() < 0.25:
            return None
        if schema_type == "int" and name.endswith("_size") and self._random.random() < 0.8:
            return size
        if schema_type in ("Tensor[]", "Scalar[]") and self._random.random() < 0.7:
            return [self._value(schema_type.removesuffix("[]"), "", tensors, size) for _ in range(size)]
        plain = schema_type.removesuffix("?")
        if plain.endswith("[]"):
            return [
                self._value(plain.removesuffix("[]"), "", tensors, size)
                for _ in range(self._random.randrange(5))
            ]
        makers: dict[str, Callable[[], object]] = {
            "Tensor": tensors,
            "bool": lambda: self._random.random() < 0.5,
            "int": self._integer,
            "SymInt": self._integer,
            "float": lambda: self._random.choice(_FLOATS),
            "Scalar": lambda: self._random.choice((*_FLOATS, 1, 2, True, 1j, complex("nan"))),
            "ScalarType": lambda: self._random.choice(_DTYPES),
            "Layout": lambda: self._random.choice(
                (torch.strided, torch.sparse_coo, torch.sparse_csr, _MKLDNN)
            ),
            "Device": lambda: self._random.choice((torch.device("cpu"), torch.device("meta"))),
            "str": lambda: self._random.choice(_TEXTS),
        }
        return makers[plain]()

    def _integer(self) -> int:
        return (
            self._random.choice(_WEIRD_INTS) if self._random.random() < 0.3 else self._random.randint(-1, 4)
        )

    def _plain_tensor(self) -> Tensor:
        return self._alike(self._random.choice(_SHAPES), torch.float64)

    def _alike(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        tensor = torch.ones(shape, dtype=dtype)
        return tensor.requires_grad_() if dtype.is_floating_point and self._random.random() < 0.3 else tensor

    def _tensor(self) -> Tensor:
        tensor = self._alike(self._random.choice(_SHAPES), self._random.choice(_DTYPES))
        kind = self._random.randrange(12)
        if kind == 0:
            return tensor.to("meta")
        if kind == 1:
            return tensor.detach().to_sparse()
        if kind == 2 and tensor.dim() == 2:
            return tensor.detach().to_sparse_csr()
        if kind == 3:
            return tensor.expand(2, *tensor.shape)
        if kind == 4 and tensor.dtype == torch.int64:
            return tensor * self._random.choice((-5, 1000, 2**62))
        if kind == 5:
            return tensor.transpose(0, -1) if tensor.dim() else tensor
        return tensor


def describe(value: object) -> str:
    if isinstance(value, Tensor):
        layout = "" if value.layout == torch.strided else f", {value.layout}"
        needs = ", requires_grad" if value.requires_grad else ""
        shape = "nested" if value.is_nested else list(value.shape)
        return f"<{str(value.dtype).removeprefix('torch.')}{shape} {value.device}{layout}{needs}>"
    if isinstance(value, list | tuple):
        return f"[{', '.join(describe(one) for one in value)}]"
    return repr(value)


def ending(call: Call, through_dispatcher: bool) -> str:
    """How a call ends: ``returned``, or the error's type and text."""
    operator: Callable[..., object] = call.operator.overload if through_dispatcher else call.operator
    try:
        operator(*call.arguments, **call.keywords)
    except Exception as error:
        # torch has errors of its own under RuntimeError; of other errors the exact type matters.
        kind = RuntimeError if isinstance(error, RuntimeError) else type(error)
        return f"{kind.__name__}: {error}"
    return "returned"


def _write(journal: IO[str], record: Mapping[str, object]) -> None:
    journal.write(json.dumps(record) + "\n")
    journal.flush()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--skip", type=int, default=0, help="make but do not call the first ones")
    parser.add_argument("--dispatcher", action="store_true", help="call through torch.ops")
    parser.add_argument("--journal", type=Path, required=True)
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    torch.set_num_threads(1)
    maker = CallMaker(options.seed)
    with options.journal.open("a", encoding="utf-8") as journal:
        for number in range(options.count):
            call = maker.make()
            if number < options.skip:
                continue
            _write(journal, {"number": number, "call": call.describe()})
            _write(journal, {"ending": ending(call, options.dispatcher)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
