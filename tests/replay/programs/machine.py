"""Runs a program and writes down all that can be seen of it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeVar

import torch
from torch.utils.checkpoint import checkpoint

from tests.oracle.adversarial import special_values
from tests.oracle.outcome import SEED
from tests.replay.programs.changes import CHANGES
from tests.replay.programs.hooks import Hooks
from tests.replay.programs.lifetimes import Lifetimes, Packed
from tests.replay.programs.observations import Log
from tests.replay.programs.operations import ALL, WIDTH, Context
from tests.replay.programs.program import (
    Ask,
    Branch,
    Checkpoint,
    Do,
    Hook,
    Program,
    Saving,
    Statement,
    Step,
    Unhook,
)

_T = TypeVar("_T")
LEAVES = ("matrix", "transposed", "vector", "scalar")
"""Leaves that stay from step to step; the data of a step is one more."""


_KEPT: dict[str, Callable[[torch.Tensor], object]] = {
    "wrapped": lambda tensor: tensor,
    "cloned": lambda tensor: tensor.detach().clone(),
    "through numpy": lambda tensor: tensor.detach().numpy().copy(),
    "halved": lambda tensor: tensor.detach().float() if tensor.is_floating_point() else tensor.detach(),
    "failing": lambda tensor: tensor,
}
"""What pack hooks keep of a tensor."""


def run_program(program: Program) -> Log:
    """Run all steps, from the same state each time."""
    log = Log()
    collecting = gc.isenabled()
    # Cycles are freed when the collector happens to run, which is no business of a backward.
    gc.disable()
    try:
        with warnings.catch_warnings():
            # What a forward warns of is not what is tested here.
            warnings.simplefilter("ignore")
            _Machine(program, log).run()
    finally:
        if collecting:
            gc.enable()
    return log


class _Machine:
    def __init__(self, program: Program, log: Log) -> None:
        self._program = program
        self._log = log
        self._lifetimes = Lifetimes(log)
        generator = torch.Generator().manual_seed(SEED)
        made = {
            "matrix": torch.randn(WIDTH, WIDTH, dtype=torch.float64, generator=generator),
            "transposed": torch.randn(WIDTH, WIDTH, dtype=torch.float64, generator=generator).mT,
            "vector": torch.randn(WIDTH, dtype=torch.float64, generator=generator),
            "scalar": torch.randn((), dtype=torch.float64, generator=generator),
        }
        self._generator = generator
        self._kept_leaves = {
            name: leaf.requires_grad_(name not in program.frozen) for name, leaf in made.items()
        }
        self._leaves = list(self._kept_leaves.values())
        self._context = Context(log, **self._kept_leaves)
        self._hooks = Hooks(log, self._lifetimes, self._leaves)
        self._values: list[torch.Tensor] = []
        self._step = Step()

    def run(self) -> None:
        for number, step in enumerate(self._program.steps):
            self._log.add(f"step {number}")
            self._step = step
            self._run_step(step)
            self._log.add("the step is left")
        self._lifetimes.stop()
        self._hooks.remove_all()
        for leaf in self._leaves:
            leaf.grad = None

    def _run_step(self, step: Step) -> None:
        torch.default_generator.manual_seed(SEED)
        for place in range(len(self._leaves)) if step.clears is None else step.clears:
            _at(self._leaves, place).grad = None
        data = torch.randn(step.rows, WIDTH, dtype=torch.float64, generator=self._generator)
        if step.special:
            data.copy_(special_values(data.dtype, data.numel(), step.rows).view_as(data))
        self._values = [data.requires_grad_("data" not in self._program.frozen)]
        before = [leaf.grad for leaf in self._leaves]
        with torch.enable_grad():
            self._statements(step.before)
            self._statements(self._program.statements)
            for change in step.changes:
                value = _at(self._values, change.at)
                self._trying(change.does, partial(CHANGES[change.does], value))
            self._ask(step.ask)
            if step.ask.again:
                self._log.add("again")
                self._ask(step.ask)
        self._log.add(
            "gradients are the same objects: "
            + ", ".join(str(leaf.grad is old) for leaf, old in zip(self._leaves, before, strict=True))
        )
        del before
        self._values = []

    def _targets(self) -> list[torch.Tensor]:
        return [*self._leaves, *self._values]

    # Forward

    def _statements(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            match statement:
                case Do():
                    self._trying(statement.operation, partial(self._do, statement, self._values))
                case Hook():
                    self._trying("registering", partial(self._hook, statement))
                case Unhook():
                    self._hooks.remove(statement.at)
                case Saving():
                    with self._saving(statement.how):
                        self._statements(statement.body)
                case Checkpoint():
                    self._trying("checkpoint", partial(self._checkpoint, statement))
                case Branch():
                    if self._step.takes_branches:
                        self._statements(statement.body)

    def _do(self, statement: Do, values: list[torch.Tensor]) -> None:
        left, right = _at(values, statement.at[0]), _at(values, statement.at[-1])
        results = ALL[statement.operation](self._context, left, right)
        for result in results if isinstance(results, tuple) else (results,):
            if not any(result is one for one in values):
                self._lifetimes.watch(result, f"value {len(values)}")
            values.append(result)

    def _hook(self, statement: Hook) -> None:
        targets = _with_gradient(self._targets())
        if statement.kind == "post-accumulate":
            targets = [target for target in targets if target.is_leaf]
        self._hooks.register(
            statement.kind, statement.does, _at(targets, statement.at), _at(targets, statement.at + 1)
        )

    def _checkpoint(self, statement: Checkpoint) -> None:
        def body(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            self._log.add(
                f"{len(statement.body)} operations in a checkpoint, grad mode {torch.is_grad_enabled()}"
            )
            values = [left, right]
            for one in statement.body:
                values += _as_tuple(
                    ALL[one.operation](self._context, _at(values, one.at[0]), _at(values, one.at[-1]))
                )
            return values[-1]

        operands = [_at(self._values, place) for place in statement.at]
        result = checkpoint(body, operands[0], operands[-1], use_reentrant=statement.reentrant)
        self._values += _as_tuple(result)

    @contextmanager
    def _saving(self, how: str) -> Iterator[None]:
        count = 0

        def pack(tensor: torch.Tensor) -> object:
            nonlocal count
            count += 1
            self._log.add(f"pack {count}, {how}", [tensor])
            if how == "as it is":
                return tensor
            packed = Packed(_KEPT[how](tensor), tensor.dtype)
            self._lifetimes.watch(packed, f"packed {count}")
            return packed

        def unpack(packed: object) -> torch.Tensor:
            self._log.add(f"unpack, {how}, grad mode {torch.is_grad_enabled()}")
            if isinstance(packed, torch.Tensor):
                return packed
            assert isinstance(packed, Packed)
            if how == "failing":
                raise KeyError("cannot unpack")
            kept = packed.kept if isinstance(packed.kept, torch.Tensor) else torch.from_numpy(packed.kept)
            return kept.to(packed.dtype)

        context: AbstractContextManager[object] = (
            torch.autograd.graph.save_on_cpu()
            if how == "on the CPU"
            else torch.autograd.graph.saved_tensors_hooks(pack, unpack)
        )
        with context:
            yield

    # Backward

    def _ask(self, ask: Ask) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gradients = self._trying("the backward", partial(self._backward, ask))
            if gradients:
                self._log.add("returned", gradients)
            self._log_gradients()
            if ask.create_graph:
                self._trying("the second backward", partial(self._second_backward, gradients or ()))
                self._log_gradients()
        for one in caught:
            self._log.add(f"{one.category.__name__}: {one.message}")
        self._log.add(f"left with grad mode {torch.is_grad_enabled()}")

    def _backward(self, ask: Ask) -> tuple[torch.Tensor | None, ...]:
        values = _with_gradient(self._values)
        roots = [_at(values, place) for place in ask.roots]
        weights: list[torch.Tensor] | None = None
        if ask.summed:
            roots = [torch.stack([root.sum() for root in roots]).sum()]
        else:
            weights = [
                torch.arange(root.numel(), dtype=root.dtype).reshape(root.shape) - 1.5 for root in roots
            ]
            for number, weight in enumerate(weights):
                self._lifetimes.watch(weight, f"weight {number}")
        targets = _with_gradient(self._targets())
        inputs = None if ask.inputs is None else [_at(targets, place) for place in ask.inputs]
        if ask.grad:
            return torch.autograd.grad(
                roots,
                inputs or [leaf for leaf in [*self._leaves, self._values[0]] if leaf.requires_grad],
                weights,
                retain_graph=ask.retain_graph,
                create_graph=ask.create_graph,
                allow_unused=inputs is None or len(inputs) > 1,
            )
        torch.autograd.backward(
            roots, weights, retain_graph=ask.retain_graph, create_graph=ask.create_graph, inputs=inputs
        )
        for weight in weights or ():
            self._log.add("weight afterwards", [weight])
        return ()

    def _second_backward(self, gradients: tuple[torch.Tensor | None, ...]) -> None:
        candidates = gradients or tuple(leaf.grad for leaf in self._leaves)
        tracked = [one for one in candidates if one is not None and one.requires_grad]
        if tracked:
            torch.stack([(one.to_dense() * 1.5).sum() for one in tracked]).sum().backward()

    def _log_gradients(self) -> None:
        memories: list[int] = []
        for number, target in enumerate(self._targets()):
            self._trying(f"tensor {number}", partial(self._log_gradient, number, target, memories))

    def _log_gradient(self, number: int, target: torch.Tensor, memories: list[int]) -> None:
        if not target.is_leaf and not target.retains_grad:
            return
        gradient = target.grad
        self._log.add(f"gradient of tensor {number}", [gradient])
        if gradient is not None and gradient.layout == torch.strided and gradient.numel():
            memory = gradient.untyped_storage().data_ptr()
            if memory in memories:
                self._log.add(f"it shares its memory with gradient {memories.index(memory)}")
            memories.append(memory)

    def _trying(self, what: str, call: Callable[[], _T]) -> _T | None:
        try:
            return call()
        except Exception as error:
            self._log.add_error(what, error)
            return None


def _at(tensors: list[torch.Tensor], place: int) -> torch.Tensor:
    return tensors[place % len(tensors)]


def _with_gradient(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Those of which a gradient can be asked; all of them where there are none, for the error that it gives."""
    return [tensor for tensor in tensors if _requires_grad(tensor)] or tensors


def _requires_grad(tensor: torch.Tensor) -> bool:
    try:
        return tensor.requires_grad and (tensor.is_leaf or tensor.grad_fn is not None)
    except RuntimeError:  # a view that was made void by a write to another one
        return False


def _as_tuple(results: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)
