"""The graph module of a traced backward: how it is called, copied, moved and stored."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.graph_module import reduce_graph_module

from backbind import _C
from backbind._torch_private import in_graph_task, skip_frame, skip_frames
from backbind.graph.plain_graph import Hooks, PlainGraph, plain_graph
from backbind.graph.saved_tensors import SavedCopies, SavedTensor
from backbind.graph.source import print_source


@skip_frames
def check_used(gradients: Iterable[object]) -> None:
    """Raises torch.autograd.grad's error where an input has no gradient."""
    for position, gradient in enumerate(gradients):
        if gradient is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {position} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )


@skip_frames
def check_gradients(gradients: Iterable[object]) -> None:
    """Raises torch.autograd.grad's error where something else than a tensor is given for a gradient."""
    for gradient in gradients:
        if gradient is not None and not isinstance(gradient, torch.Tensor | fx.Proxy):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")


class TracedBackward(fx.GraphModule):
    """The graph module of a backward.

    It runs, prints as Python, pickles and loads like any graph module; loading imports backbind, so that its operators
    are there. It runs without grad mode, as ``loss.backward()`` does: some formulas compute otherwise (and round
    otherwise) where their own gradient may be wanted.

    Buffers lie on the storage of the tensors that the forward saved. A call raises eager's error where one of them was
    changed in place since; so does whatever copies them (``copy.deepcopy``, ``pickle``, ``.to()``), because the copy
    would hold other values than the forward saved. A copy owns its buffers and checks nothing.

    A graph that calls live nodes runs inside a backward of its own, as the code that these run may expect it. It cannot
    be copied or stored, and neither can one over jagged tensors, whose sizes are symbols: both raise TypeError.
    """

    _saved_tensors: tuple[SavedTensor, ...] = ()
    _allow_unused: bool = True

    def watch(self, saved_tensors: Iterable[SavedTensor], *, allow_unused: bool) -> None:
        """Tell what every call has to check: buffers that others may change, and whether each input has a gradient."""
        self._saved_tensors = tuple(saved_tensors)
        self._allow_unused = allow_unused

    def _numbers(self) -> dict[str, torch.Tensor]:
        """Buffers that stand for Python numbers: they do not decide about the dtype of a result, unlike any copy."""
        return {name: one for name, one in self.named_buffers() if _C.is_wrapped_number(one)}

    def _mark_numbers(self, names: Iterable[str]) -> None:
        for name in names:
            _C.mark_wrapped_number(self.get_buffer(name))

    @skip_frames
    def _calls_live_nodes(self) -> bool:
        return any(isinstance(one, _C.LiveNode) for one in vars(self).values())

    def _check_can_be_stored(self) -> None:
        """Raises TypeError where the graph holds something that means nothing but here."""
        for one in vars(self).values():
            if isinstance(one, torch.SymInt):
                raise TypeError(
                    f"the size {one} is a symbol that belongs to jagged tensors of this process, and cannot be copied "
                    "or stored"
                )

    # torch.compile leaves this frame to Python, so that a compiled graph checks at every call, too.
    @skip_frame
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check_gradients((*args, *kwargs.values()))
        self._check_saved_tensors()
        run = functools.partial(super().__call__, *args, **kwargs)
        with torch.no_grad():
            gradients = in_graph_task(run) if self._calls_live_nodes() else run()
        if not self._allow_unused:
            check_used(gradients.values() if isinstance(gradients, dict) else gradients)
        return gradients

    @skip_frames
    def _check_saved_tensors(self, replaced: Container[str] = ()) -> None:
        """Raises eager's error, unless the buffer is one of those that are about to be ``replaced``."""
        buffers = self._buffers
        for saved in self._saved_tensors:
            if saved.buffer in replaced:
                continue
            # Where a user has put another tensor in its place, that one is the user's own.
            if saved.has_changed() and buffers.get(saved.buffer) is saved.tensor:
                raise saved.error()

    def plain(self, *, hooks: Hooks = "refuse") -> PlainGraph:
        """The graph as records, which hold nothing of this process.

        Raises:
            TypeError: it holds what means nothing elsewhere; ``hooks="drop"`` leaves hooks out.
            RuntimeError: eager's error, where a saved tensor was changed in place since the trace.
            ValueError: ``hooks`` is something else.
        """
        self._check_saved_tensors()
        return plain_graph(self, allow_unused=self._allow_unused, hooks=hooks)

    def to_source(self, *, hooks: Hooks = "refuse") -> str:
        """The text of a Python module whose function ``backward(saved, *gradients)`` is this graph.

        It imports torch and backbind, and runs without the graph: ``saved`` maps names to the tensors that the forward
        saved, such as ``dict(graph.named_buffers())`` of this graph or of one that `backbind.load` gave.

        Args:
            hooks: what becomes of hooks, which have no text: "drop" leaves them out.

        Raises:
            TypeError: it holds what means nothing outside of this process; the message lists it.
            RuntimeError: eager's error, where a saved tensor was changed in place since the trace.
            ValueError: ``hooks`` is something else.
        """
        return print_source(self.plain(hooks=hooks))

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> TracedBackward:
        self._check_saved_tensors()
        numbers = self._numbers()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._buffers.update(numbers)  # which have no device, and whose dtype does not matter
        self._saved_tensors = tuple(
            saved for saved in self._saved_tensors if self._buffers.get(saved.buffer) is saved.tensor
        )
        return self

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """As of any module, but what is loaded takes the place of a buffer and is never copied into it.

        Buffers lie on the storage of what the forward saved: a parameter of the model, for example.
        """
        self._check_saved_tensors(replaced=state_dict)
        numbers = tuple(self._numbers())
        # What stands for a number is marked as one, so it is a copy in any case: the tensor given may be the user's.
        copied = numbers if assign else self._buffers
        result = super().load_state_dict(self._with_copies(state_dict, copied), strict, assign=True)
        self._mark_numbers(numbers)
        return result

    def _with_copies(self, state_dict: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The state with copies in place of what it has for these buffers."""
        copies = SavedCopies()
        own = dict(state_dict)
        for name in names:
            buffer, value = self._buffers.get(name), own.get(name)
            if buffer is not None and isinstance(value, torch.Tensor):
                own[name] = copies.copy(value).to(device=buffer.device, dtype=buffer.dtype)
        return own

    def __copy__(self) -> TracedBackward:
        copied = TracedBackward(self, copy.copy(self.graph), "TracedBackward")
        copied.watch(self._saved_tensors, allow_unused=self._allow_unused)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedBackward:
        self._check_saved_tensors()
        self._check_can_be_stored()
        copied = super().__deepcopy__(memo)
        assert isinstance(copied, TracedBackward)
        copied.watch((), allow_unused=self._allow_unused)
        copied._mark_numbers(self._numbers())
        return copied

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        self._check_saved_tensors()
        self._check_can_be_stored()
        _, (body, import_block) = super().__reduce__()
        own = {"_saved_tensors", "_allow_unused"}
        return load_traced_backward, (
            {name: value for name, value in body.items() if name not in own},
            import_block,
            self._allow_unused,
            tuple(self._numbers()),
        )


def load_traced_backward(
    body: dict[Any, Any], import_block: str, allow_unused: bool, numbers: tuple[str, ...]
) -> TracedBackward:
    """Rebuilds a pickled TracedBackward."""
    module: Any = reduce_graph_module(body, import_block)
    loaded = TracedBackward(module, module.graph, "TracedBackward")
    loaded.watch((), allow_unused=allow_unused)
    loaded._mark_numbers(numbers)
    return loaded
