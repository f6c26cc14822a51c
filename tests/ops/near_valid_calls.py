"""Makes calls of operators that are almost right, each in a process that may end in it.

``python -m tests.ops.near_valid_calls --seed 7 --count 1000 --journal FILE`` takes calls that the oracle's programs
recorded (see recorded_calls.py), changes one to three things in each, and makes them. A child process makes them one
after another; where it ends, the journal names the call, and another child goes on behind it. Call ``n`` of a seed is
always the same call, so ``--first n --count 1`` makes just that one.

``--guarded``, with guard_pages.c preloaded, gives every tensor memory that ends (or begins) at a page that cannot be
touched, so that a kernel that reads or writes past a tensor ends its process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import resource
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch
from backbind._operator import FunctionalOperator
from torch import Tensor

from tests.ops.recorded_calls import RecordedCall, recorded_calls
from tests.ops.wrong_calls import Call, describe, ending

_MEMORY = 2 << 30
"""Bytes of address space that a child may take beyond what it begins with."""

_SECONDS = 20
"""Processor seconds after which a call counts as one that never ends."""

_BATCH = 200
"""Calls that one child makes."""

_SAMPLES, _PER_NODE = 3, 8
_INTEGERS = (0, 1, -1, 2, -2, 3, 5, 64, -64, 2**31, -(2**31) - 1, 2**40, 2**62, 2**63 - 1, -(2**63))
_NUMBERS = (0.0, 0.5, 1.0, -1.0, 2.0, 1e308, -0.0, float("inf"), float("-inf"), float("nan"))
_DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.complex64,
    torch.complex128,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)


@dataclass(frozen=True)
class NearValidCall:
    """One call, and what was changed in it."""

    call: Call
    changes: tuple[str, ...]

    def describe(self) -> str:
        return f"{self.call.describe()} [{'; '.join(self.changes)}]"


class CallMaker:
    """Makes call ``number`` of a seed."""

    def __init__(self, seed: int, recorded: Sequence[RecordedCall]) -> None:
        self._seed = seed
        self._by_node: dict[str, list[RecordedCall]] = {}
        for call in recorded:
            self._by_node.setdefault(call.operator.name, []).append(call)
        self._nodes = sorted(self._by_node)

    def make(self, number: int) -> NearValidCall:
        draw = random.Random(f"{self._seed} {number}")
        # Every node gets as many calls as any other, whatever the seed.
        call = draw.choice(self._by_node[self._nodes[number % len(self._nodes)]])
        arguments = [copied(one) for one in (call.grads, call.needs_input_grad, *call.saved)]
        change = _Change(draw, call.operator, arguments)
        changes = tuple(change.one() for _ in range(draw.choice((1, 1, 2, 3))))
        return NearValidCall(Call(call.operator, arguments, {}), changes)


def copied(value: Any) -> Any:
    """The same value in memory of its own."""
    if isinstance(value, Tensor):
        if value.is_nested or value.layout != torch.strided or 0 in value.stride():
            return value.clone() if type(value) is Tensor else value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).copy_(
            value
        )
    if isinstance(value, list):
        return [copied(one) for one in value]
    return value


def _has_memory(tensor: Tensor) -> bool:
    """Whether the memory of a tensor is as large as it was made."""
    if (
        tensor.is_nested
        or tensor.layout != torch.strided
        or tensor.device.type != "cpu"
        or not tensor.numel()
    ):
        return True
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + last + 1) * tensor.element_size()


class _Change:
    """Changes arguments in place."""

    def __init__(self, draw: random.Random, operator: FunctionalOperator, arguments: list[Any]) -> None:
        self._draw = draw
        self._arguments = arguments
        self._names = ["grads", "needs_input_grad", *(one.name for one in operator.saved)]

    def one(self) -> str:
        """Make one change. Returns it in words."""
        position = self._draw.choice([at for at in range(len(self._arguments)) if at != 1] or [0])
        if self._draw.random() < 0.05:
            position = 1
        before = self._arguments[position]
        self._arguments[position] = self._changed(before)
        return f"{self._names[position]} was {describe(before)}"

    def _changed(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, list | tuple):
            return self._list(list(value))
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float | complex):
            return self._draw.choice(_NUMBERS)
        if isinstance(value, torch.dtype):
            return self._draw.choice(_DTYPES)
        if isinstance(value, torch.layout):
            return self._draw.choice((torch.strided, torch.sparse_coo, torch.sparse_csr))
        if isinstance(value, str):
            return self._draw.choice(
                ("", "none", "tanh", "sum", "mean", "reduced", "amax", "prod", "min", "x")
            )
        return self._draw.choice((None, torch.ones(2, dtype=torch.float64), 0, [], [1]))

    def _integer(self, value: int) -> int:
        if self._draw.random() < 0.4:
            return value + self._draw.choice((-2, -1, 1, 2))
        return self._draw.choice(_INTEGERS)

    def _list(self, values: list[Any]) -> list[Any]:
        kind = self._draw.randrange(8)
        if not values or kind == 0:
            return [*values, values[0] if values else self._draw.choice((0, 1, 5))]
        at = self._draw.randrange(len(values))
        if kind == 1:
            return values[:at] + values[at + 1 :]
        if kind == 2:
            return []
        return [*values[:at], self._changed(values[at]), *values[at + 1 :]]

    def _tensor(self, tensor: Tensor) -> Any:
        changes: tuple[Callable[[Tensor], Any], ...] = (
            self._resized,
            self._resized,
            self._resized,
            self._resized,
            self._other_dimensions,
            self._another,
            self._values,
            self._values,
            self._in_memory,
            self._without_memory,
            lambda one: one.to(self._draw.choice(_DTYPES)),
            lambda one: self._draw.choice((None, one.to("meta"))),
            self._of_layout,
            lambda one: one.detach().requires_grad_() if one.is_floating_point() else one,
        )
        if not _has_memory(tensor):
            return tensor  # torch itself would read what is not there
        if tensor.is_nested:
            return self._draw.choice((None, torch.ones(2, 3, dtype=tensor.dtype)))
        try:
            return self._draw.choice(changes)(tensor)
        except (RuntimeError, IndexError):
            return None  # there is no such tensor

    def _resized(self, tensor: Tensor) -> Tensor:
        """Another number of elements along one dimension, the same numbers again and again."""
        if not tensor.dim():
            return tensor.reshape(1).repeat(self._draw.choice((1, 2, 5)))
        dim = self._draw.randrange(tensor.dim())
        size = tensor.shape[dim]
        new = self._draw.choice((0, 1, size - 1, size + 1, size + 2, size * 2, size * 7, 300))
        if tensor.numel() // max(size, 1) * new > 1 << 20:
            new = 0
        if not tensor.numel():
            shape = list(tensor.shape)
            shape[dim] = max(new, 0)
            return torch.zeros(shape, dtype=tensor.dtype)
        indices = torch.arange(max(new, 0)).remainder(max(size, 1))
        return tensor.index_select(dim, indices)

    def _other_dimensions(self, tensor: Tensor) -> Tensor:
        kind = self._draw.randrange(5)
        if kind == 0:
            return tensor.unsqueeze(self._draw.randint(0, tensor.dim()))
        if kind == 1:
            return tensor.reshape(-1)
        if kind == 2:
            return tensor.reshape(-1).narrow(0, 0, 1).reshape(()) if tensor.numel() else tensor.sum()
        if kind == 3 and tensor.dim() >= 2:
            return tensor.transpose(*self._draw.sample(range(tensor.dim()), 2)).contiguous()
        return tensor.select(0, 0).clone() if tensor.dim() and tensor.shape[0] else tensor.unsqueeze(0)

    def _another(self, tensor: Tensor) -> Tensor:
        """Another tensor of the call."""
        others = [
            one
            for value in self._arguments
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, Tensor) and _has_memory(one)
        ]
        another: Tensor = copied(self._draw.choice(others or [tensor]))
        return another

    def _values(self, tensor: Tensor) -> Tensor:
        """Some numbers out of the usual: for indices, out of range."""
        if not tensor.numel():
            return tensor
        changed = tensor.detach().contiguous().clone()
        flat = changed.view(-1)
        at = torch.tensor([self._draw.randrange(flat.numel()) for _ in range(self._draw.choice((1, 3)))])
        if self._draw.random() < 0.3:
            at = torch.arange(flat.numel())
        if tensor.dtype == torch.bool:
            flat[at] = ~flat[at]
        elif tensor.is_floating_point() or tensor.is_complex():
            flat[at] = self._draw.choice(_NUMBERS)
        else:
            limits = torch.iinfo(tensor.dtype)
            value = self._draw.choice((-1, -2, 100, 10**5, 10**8, 2**31, 2**40, limits.max, limits.min))
            flat[at] = max(limits.min, min(value, limits.max))
        return changed

    def _in_memory(self, tensor: Tensor) -> Tensor:
        kind = self._draw.randrange(4)
        if kind == 0 and tensor.dim():
            dim = self._draw.randrange(tensor.dim())
            return tensor.narrow(dim, 0, 1).expand(tensor.shape) if tensor.shape[dim] else tensor
        if kind == 1:
            return tensor.unsqueeze(-1).repeat(*[1] * tensor.dim(), 2)[..., 0]
        if kind == 2:
            return tensor.mT.contiguous().mT if tensor.dim() >= 2 else tensor
        return tensor.new_zeros(1).expand(tensor.shape)

    def _without_memory(self, tensor: Tensor) -> Tensor:
        """A tensor whose storage was made too small for it."""
        tensor = tensor.contiguous().clone()
        storage = tensor.untyped_storage()
        storage.resize_(self._draw.choice((0, storage.nbytes() // 2, max(storage.nbytes() - 1, 0))))
        return tensor

    def _of_layout(self, tensor: Tensor) -> Any:
        kind = self._draw.randrange(4)
        if kind == 0:
            return tensor.to_sparse()
        if kind == 1:
            return tensor.to_sparse_csr()
        if kind == 2:
            return tensor.to_mkldnn()
        return torch.nested.nested_tensor([tensor, tensor])


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    return pages * resource.getpagesize()


class GuardPages:
    """Switches the allocator of guard_pages.c, which must be preloaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)

    def switch(self, mode: int) -> None:
        self._library.backbind_guard_pages(mode)


def _make_calls(
    maker: CallMaker, numbers: range, write: Callable[[Mapping[str, object]], None], guard: GuardPages | None
) -> None:
    """Make the calls in this process, which may end."""
    limit = _address_space() + _MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        spent = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
        resource.setrlimit(resource.RLIMIT_CPU, (spent + _SECONDS, resource.RLIM_INFINITY))
        if guard is not None:
            guard.switch(1 + number % 2)
        call = maker.make(number)
        write({"number": number, "call": call.describe()})
        write({"ending": ending(call.call, through_dispatcher=False)})
        del call
        if guard is not None:
            guard.switch(0)


def _run(maker: CallMaker, numbers: range, journal: IO[str], guard: GuardPages | None) -> None:
    """Make all calls, in one child process after another."""

    def write(record: Mapping[str, object]) -> None:
        journal.write(json.dumps(record) + "\n")
        journal.flush()

    following = numbers.start
    while following < numbers.stop:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            progress = os.fdopen(write_end, "w")

            def tell(record: Mapping[str, object], progress: IO[str] = progress) -> None:
                write(record)
                if "number" in record:
                    progress.write(f"{record['number']}\n")
                    progress.flush()

            try:
                _make_calls(maker, range(following, min(following + _BATCH, numbers.stop)), tell, guard)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as progress:
            made = [int(line) for line in progress]
        _, outcome = os.waitpid(child, 0)
        if outcome:
            write({"died": os.waitstatus_to_exitcode(outcome)})
        following = made[-1] + 1 if made else following + 1


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--guarded", action="store_true", help="guard_pages.c is preloaded: switch it on")
    parser.add_argument("--nodes", default="", help="only nodes whose name contains this")
    parser.add_argument("--journal", type=Path, required=True)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    # What torch imports at the first such call is imported once, not in every child.
    torch.ops.aten._log_softmax_backward_data(*[torch.ones(2, 2, device="meta")] * 2, 1, torch.float32)
    recorded = recorded_calls(_SAMPLES, _PER_NODE)
    recorded = [call for call in recorded if options.nodes in call.operator.name]
    maker = CallMaker(options.seed, recorded)
    with options.journal.open("a", encoding="utf-8") as journal:
        numbers = range(options.first, options.first + options.count)
        _run(maker, numbers, journal, GuardPages() if options.guarded else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
