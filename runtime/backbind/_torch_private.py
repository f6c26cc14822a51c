"""Every Python touch point with something that torch does not promise to keep."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """Calls inside reach torch's own kernels: no mode sees or changes them, and they make ordinary tensors.

    Uses the function with which torch itself leaves the dispatch modes of the thread for a while.
    """
    with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.inference_mode(False):
        yield


def skip_frame(function: _Function) -> _Function:
    """Have torch.compile leave the frame of a function to Python, and compile the frames that it calls.

    torch.compiler.disable(recursive=False) does the same, and imports the compiler.
    """
    return _set_frame_action(function, torch._C._dynamo.eval_frame._FrameAction.DEFAULT)


def skip_frames(function: _Function) -> _Function:
    """Have torch.compile leave a function and all that it calls to Python."""
    return _set_frame_action(function, torch._C._dynamo.eval_frame._FrameAction.SKIP)


def _set_frame_action(function: _Function, called: object) -> _Function:
    frames: Any = torch._C._dynamo.eval_frame
    strategy = frames._FrameExecStrategy(frames._FrameAction.SKIP, called)
    frames.set_code_exec_strategy(function.__code__, strategy)
    return function


@skip_frame
def in_graph_task(call: Callable[[], _Result]) -> _Result:
    """What ``call`` gives when a hook of a running backward calls it.

    Code of a user may ask for its backward: a checkpoint recomputes once for each, a hook queues what is to be called
    at the end of it. Nodes that are called ask it which gradients they have to compute (all of them), and whether they
    may let go of what they saved (no): so it is one like ``loss.backward(retain_graph=True)``. Uses the object through
    which torch runs every backward.
    """
    results: list[_Result] = []
    root, gradient = _root_without_gradients(functools.partial(_keep_result, call, results))
    engine: Any = torch.autograd.Variable._execution_engine
    engine.run_backward((root,), (gradient,), True, False, (), allow_unreachable=True, accumulate_grad=True)
    return results[0]


@skip_frames
def _root_without_gradients(hook: Callable[[torch.Tensor], None]) -> tuple[torch.Tensor, torch.Tensor]:
    """The root of a backward that calls the hook and computes nothing, so that modes see nothing; its gradient."""
    with without_modes(), torch.enable_grad():
        functions: Any = torch._C._functions
        root: torch.Tensor = functions.UndefinedGrad()(torch.ones((), requires_grad=True))
        root.register_hook(hook)
        return root, torch.ones(())


@skip_frame
def _keep_result(call: Callable[[], _Result], results: list[_Result], _: torch.Tensor) -> None:
    results.append(call())


def rename(node: fx.Node, name: str) -> None:
    """Call a node of a graph otherwise: by this name, or nearly so where the graph has it already."""
    node._rename(name)


def stock_compiled_autograd_is_active() -> bool:
    """Whether torch's own compiled autograd holds the engine's hook. It is never imported for the sake of asking."""
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(module, "compiled_autograd_enabled", False))


class _SharedHook:
    """The engine's one hook, between torch's compiled autograd and us. It takes the place of the function through
    which torch sets it.

    torch.compile and each transform of torch.func switch compiled autograd off and on again around their own work. To
    uninstall the hook and install it anew each time would hurt backwards of other threads, which may not begin while it
    changes hands. So what goes from off to off leaves it as it is: ours.
    """

    def __init__(
        self, stock: Callable[..., Any], take: Callable[[], object], tell: Callable[[bool], object]
    ) -> None:
        self._stock = stock
        self._take = take
        self._tell = tell
        self._is_ours = False
        # What torch would tell the next caller that was set before.
        self._dynamic = False
        functools.update_wrapper(self, stock)

    def take(self) -> None:
        """Install the hook, while compiled autograd is off.

        Raises:
            RuntimeError: another thread is inside a backward, and torch lets nobody change the hook.
        """
        self._set_is_ours(False)
        self._take()
        self._set_is_ours(True)

    def _set_is_ours(self, is_ours: bool) -> None:
        self._is_ours = is_ours
        self._tell(is_ours)

    def __call__(self, compiler: object, dynamic: bool) -> tuple[object, bool]:
        """What torch calls with a compiler, or with None to switch compiled autograd off; gives what was set before."""
        before, self._dynamic = self._dynamic, dynamic
        if compiler is None and self._is_ours:
            return None, before
        was_ours = self._is_ours
        self._set_is_ours(False)
        try:
            previous, _ = self._stock(compiler, dynamic)
        except BaseException:
            self._dynamic = before
            self._set_is_ours(was_ours)
            raise
        if compiler is None:
            self._try_to_take()
        return previous, before

    def _try_to_take(self) -> None:
        # Whoever switches compiled autograd off does not ask for us. The next time is tried again.
        with contextlib.suppress(RuntimeError):
            self.take()


class _Engine(torch._C._ImperativeEngine):
    """The object through which torch runs every backward that Python asks for."""

    def __init__(self, run: Callable[[object, object, object], bool]) -> None:
        super().__init__()
        self._run = run

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> Any:
        """As torch's, which runs what ``run`` does not."""
        is_plain = accumulate_grad is True and create_graph is False and inputs == ()
        if is_plain and self._run(tensors, grad_tensors, keep_graph):
            return None
        return super().run_backward(
            tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad
        )


def install_engine(run: Callable[[object, object, object], bool]) -> None:
    """Have ``run`` asked for every backward without inputs and without create_graph: whether it ran it.

    Whoever else has put an engine of their own there keeps it.
    """
    variable: Any = torch.autograd.Variable
    if type(variable._execution_engine) is torch._C._ImperativeEngine:
        variable._execution_engine = _Engine(run)


def install_engine_hook(take: Callable[[], object], tell: Callable[[bool], object]) -> None:
    """Have ``take`` install the engine's hook, now and whenever torch's compiled autograd was switched off.

    ``tell`` is told whenever the hook is another's from now on, and whenever it is ours again.

    Raises:
        RuntimeError: as for ``take``.
    """
    space: Any = getattr(getattr(torch._C, "_dynamo", None), "compiled_autograd", None)
    stock: Any = getattr(space, "set_autograd_compiler", None)
    if stock is None:
        take()
        tell(True)
        return
    if not isinstance(stock, _SharedHook):
        stock = space.set_autograd_compiler = _SharedHook(stock, take, tell)
    stock.take()
