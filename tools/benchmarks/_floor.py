"""The floor of a backward: the ATen calls that eager makes, from a flat C++ loop with no autograd around them.

One backward of the model is recorded, and every call of an ATen operator below autograd in it: which operator, with
which numbers, on which earlier results and which saved tensors. The loop makes the same calls again in the same order,
below the autograd keys, by the C++ function of each operator as the nodes' own code calls it. Results feed the calls
that come after and are let go of at their last use; gradients are stolen, copied or added up into ``.grad`` by the
template with which torch's own node does it. The gradients are those of eager, bit for bit.

It contains: all kernels and their dispatch; views and transposed views, which are calls too; the sums of gradients, in
place where the engine's are; what hooks compute; the gradient that the backward begins with.

It does not contain: the engine (ready queue, counting of dependencies, checks of gradients); the nodes (reading and
freeing saved tensors, freeing the graph); the Python of hooks; numbers and constant tensors that nodes make without a
call. The saved tensors are those of the recorded forward, so they may be out of the cache where eager's have just been
written. Nothing is fused, left out or reordered: a faster backward than this one makes other calls.
"""

from typing import Any

import torch

from tools.benchmarks._compiled import load
from tools.benchmarks._models import Model, clear


class Floor:
    """The flat loop of one model."""

    def __init__(self, model: Model) -> None:
        load("flat_loop")
        clear(model)
        classes: Any = torch.classes
        self._loop = classes.backbind_flat_loop.FlatLoop(model.forward(), model.parameters)
        clear(model)

    def run(self) -> None:
        self._loop.run()

    @property
    def calls(self) -> dict[str, int]:
        """How often each operator is called."""
        return dict(self._loop.calls())

    @property
    def boxed(self) -> dict[str, int]:
        """Those among them that typed_steps.cpp does not list, so that their calls cost more than they must."""
        return dict(self._loop.boxed())
