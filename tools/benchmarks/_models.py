"""The models whose backwards are measured: each a forward that gives a loss, over parameters of its own."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

Surround: TypeAlias = Callable[[], AbstractContextManager[object]]
"""What each thread enters around its backwards."""


def one_backward(loss: Tensor, surround: Surround) -> None:
    with surround():
        loss.backward()


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
        name: what the table calls it.
        parameters: the leaves that gradients accumulate into.
        forward: a new forward pass; gives a scalar loss, or what `backward` takes.
        launch_bound: whether the engine's own work is a good part of the time, so that there is something to gain.
        backward: what is timed: one backward, or several as a program runs them.
        has_floor: whether a flat loop can be recorded of it.
        warm_up: how often it runs before it is timed.
        changes: whether forwards make other graphs; each is then made twice in a row, for eager and for capture.
    """

    name: str
    parameters: list[Tensor]
    forward: Callable[[], Any]
    launch_bound: bool = True
    backward: Callable[[Any, Surround], None] = one_backward
    has_floor: bool = True
    warm_up: int = 2
    changes: bool = False


def _over(name: str, module: nn.Module, inputs: Callable[[], Tensor], *, launch_bound: bool = True) -> Model:
    batch = inputs()
    return Model(name, list(module.parameters()), lambda: module(batch).square().mean(), launch_bound)


class Residual(nn.Module):
    """Convolution, batch normalisation, and the input added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x + self.second(functional.relu(self.norm(self.first(x)))))


def deep_small(depth: int = 128) -> Model:
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()) for _ in range(depth)]
    return _over("deep-small", nn.Sequential(*blocks), lambda: torch.randn(4, 16))


def transformer(width: int) -> Model:
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    return _over(f"transformer {width}", stack, lambda: torch.randn(2, 16, width))


def residual_net() -> Model:
    blocks = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *(Residual(8) for _ in range(6)))
    return _over("residual net", blocks, lambda: torch.randn(2, 3, 8, 8))


def unrolled(kind: str, steps: int = 200) -> Model:
    cell: nn.LSTMCell | nn.GRUCell = nn.LSTMCell(16, 16) if kind == "LSTM" else nn.GRUCell(16, 16)
    batch = torch.randn(steps, 4, 16)

    def forward() -> Tensor:
        hidden = state = torch.zeros(4, 16)
        for x in batch:
            if isinstance(cell, nn.LSTMCell):
                hidden, state = cell(x, (hidden, state))
            else:
                hidden = cell(x, hidden)
        return hidden.square().mean()

    return Model(f"{kind} cell x{steps}", list(cell.parameters()), forward)


def tiny_parameters(count: int = 1000) -> Model:
    parameters = [nn.Parameter(torch.randn(4)) for _ in range(count)]
    x = torch.randn(4)

    def forward() -> Tensor:
        total = x
        for parameter in parameters:
            total = total + x * parameter
        return total.sum()

    return Model(f"{count} tiny parameters", list(parameters), forward)


def sparse_embedding() -> Model:
    table = nn.EmbeddingBag(1000, 16, sparse=True, mode="sum")
    head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    indices = torch.randint(1000, (8, 5))
    return Model(
        "sparse embedding",
        [*table.parameters(), *head.parameters()],
        lambda: sum((head(table(indices + i)).square().mean() for i in range(8)), torch.zeros(())),
    )


def hooked(count: int = 200) -> Model:
    model = deep_small(count // 2)
    hidden: list[Tensor] = []

    def forward() -> Tensor:
        hidden.clear()
        x = torch.ones(4, 16)
        for i in range(0, len(model.parameters), 4):
            weight, bias, scale, shift = model.parameters[i : i + 4]
            x = functional.gelu(
                functional.layer_norm(functional.linear(x, weight, bias), (16,), scale, shift)
            )
            x.register_hook(lambda gradient: gradient * 1.0)
            hidden.append(x)
        return x.square().mean()

    for parameter in model.parameters[: count // 2]:
        parameter.register_hook(lambda _: None)
    return Model(f"{count} hooks", model.parameters, forward)


def large_matmul() -> Model:
    module = nn.Sequential(
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)
    )
    return _over("large matmul", module, lambda: torch.randn(256, 1024), launch_bound=False)


MODELS: tuple[Callable[[], Model], ...] = (
    deep_small,
    lambda: transformer(64),
    lambda: transformer(256),
    residual_net,
    lambda: unrolled("LSTM"),
    lambda: unrolled("GRU"),
    tiny_parameters,
    sparse_embedding,
    hooked,
    large_matmul,
)


def clear(model: Model) -> None:
    """Forget the gradients, as training does between steps."""
    for parameter in model.parameters:
        parameter.grad = None


def same_bits(left: Tensor, right: Tensor) -> bool:
    """Whether two gradients agree, dense or sparse."""
    if left.layout != right.layout:
        return False
    if left.layout != torch.strided:
        left, right = left.to_dense(), right.to_dense()
    return torch.equal(left.view(torch.int32), right.view(torch.int32))
