"""Gradients that are no plain dense tensors: sparse, nested, subclasses, meta, complex, conjugated, undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from tests.replay.differential import Expected, Raised, Run, assert_same_as_eager


class Tagged(torch.Tensor):
    """A subclass by inheritance alone, which operators keep."""


class Logged(torch.Tensor):
    """A wrapper that notes every operator that reaches it, and hands on what it wraps."""

    run: Run | None = None
    wrapped: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor, requires_grad: bool = False) -> Logged:
        made: Logged = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, requires_grad=requires_grad
        )
        made.wrapped = inner
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"Logged({self.wrapped})"

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if cls.run is not None:
            cls.run.log.append(str(func))

        def unwrap(value: Any) -> Any:
            return value.wrapped if isinstance(value, Logged) else value

        out = func(
            *torch.utils._pytree.tree_map(unwrap, args), **torch.utils._pytree.tree_map(unwrap, kwargs or {})
        )
        return torch.utils._pytree.tree_map(lambda v: Logged(v) if isinstance(v, torch.Tensor) else v, out)


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_wrapper_subclasses_that_note_each_operator(steps: int, create_graph: bool) -> None:
    def scenario(run: Run) -> object:
        Logged.run = None
        w = Logged(torch.randn(3, 3), requires_grad=True)
        x = Logged(torch.randn(2, 3), requires_grad=True)
        out = []
        Logged.run = run
        for _ in range(steps):
            loss = (torch.tanh(x @ w) * w.sum(0)).sum() + w.sum()
            run.note("backward")
            out.append(run.attempt(lambda loss=loss: loss.backward(create_graph=create_graph)))  # type: ignore[misc]
        Logged.run = None
        grads: list[Any] = [x.grad, w.grad]
        return out, [(type(grad).__name__, grad.wrapped) for grad in grads]

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("mixed", ["two", "with plain leaf", "plain gradient given", "plain .grad"])
def test_two_tensors_in_one(mixed: str) -> None:
    def scenario(run: Run) -> object:
        w = TwoTensor(torch.randn(3), torch.randn(3)).requires_grad_()
        x = torch.randn(3, requires_grad=True) if mixed == "with plain leaf" else w
        if mixed == "plain .grad":
            w.grad = TwoTensor(torch.ones(3), torch.zeros(3))
        out = (w * x).sin()
        out.register_hook(lambda grad: run.note(type(grad)))
        with run.backward():
            if mixed == "plain gradient given":
                result = run.attempt(lambda: out.backward(torch.ones(3)))
            else:
                result = run.attempt(out.sum().backward)
        grads: list[Any] = [w.grad, x.grad]
        return (
            result,
            [type(g) for g in grads],
            [(g.a, g.b) if isinstance(g, TwoTensor) else g for g in grads],
        )

    assert_same_as_eager(scenario)


def _tagged(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.randn(shape).as_subclass(Tagged).requires_grad_()


@pytest.mark.parametrize("parameter", ["subclass", "parameter", "buffer"])
def test_subclasses_by_inheritance(parameter: str) -> None:
    def scenario(run: Run) -> object:
        w: torch.Tensor = _tagged((3,))
        if parameter == "parameter":
            w = torch.nn.Parameter(torch.randn(3))
        elif parameter == "buffer":
            w = torch.nn.Buffer(torch.randn(3)).requires_grad_()
        w.register_hook(lambda grad: run.note(type(grad), grad))
        with run.backward():
            (w * w.sin()).sum().backward()
        return type(w.grad), w.grad

    assert_same_as_eager(scenario)


NESTED: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "product": lambda nested, w: nested * w,
    "matmul": lambda nested, w: nested @ w.expand(4, 4),
    "twice": lambda nested, w: nested.sin() * nested + nested,
    "linear and norm": lambda nested, w: torch.nn.functional.layer_norm(nested * w, (4,)),
    "unbind": lambda nested, w: torch.cat([part * 2 for part in nested.unbind()]) * w,
}


_NOT_BOTH_NESTED = "Expected both self and other to be nested, but got a nested self and non-nested other"

REFUSED_NESTED = {
    ("product", torch.strided): Raised("RuntimeError", _NOT_BOTH_NESTED),
    ("matmul", torch.strided): Raised(
        "RuntimeError", "Expected both to be nested, but got a nested self and non-nested other"
    ),
    ("linear and norm", torch.strided): Raised("RuntimeError", _NOT_BOTH_NESTED),
}
"""What torch says of forwards that there are not for this layout, so that no backward begins."""


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
@pytest.mark.parametrize("function", NESTED)
def test_nested_tensors(function: str, layout: torch.layout) -> None:
    refused = REFUSED_NESTED.get((function, layout))

    def scenario(run: Run) -> object:
        parts = [leaf(2, 4), leaf(3, 4), leaf(1, 4)]
        w = leaf(4)
        out = []
        for _ in range(2):
            nested = torch.nested.as_nested_tensor(parts, layout=layout)
            value = run.attempt(lambda nested=nested: _nested_backward(function, nested, w))  # type: ignore[misc]
            assert value == refused
            out += [value, [part.grad for part in parts], w.grad]
        return out

    assert_same_as_eager(scenario, Expected(captures=refused is None))


def _nested_backward(function: str, nested: torch.Tensor, w: torch.Tensor) -> None:
    out = NESTED[function](nested, w)
    (torch.cat([part.flatten() for part in out.unbind()]) if out.is_nested else out).sum().backward()


def test_a_nested_leaf() -> None:
    def scenario(run: Run) -> object:
        nested: Any = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        nested.requires_grad_()
        out = [run.attempt((nested * 3).values().sum().backward) for _ in range(2)]
        if nested.grad is None:
            return out  # torch does not accumulate into this leaf, and says so
        return out, nested.grad.values(), nested.grad.offsets(), nested.grad.is_nested

    assert_same_as_eager(scenario)


SPARSE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mm": lambda s, d: torch.sparse.mm(s, d).sum(),
    "sum": lambda s, d: torch.sparse.sum(s * 2),
    "to_dense": lambda s, d: (s.to_dense() * 2).sum(),
    "added": lambda s, d: (s + s).to_dense().sum(),
    "values": lambda s, d: (s.coalesce().values() ** 2).sum(),
    "twice": lambda s, d: torch.sparse.mm(s, d).sum() + torch.sparse.sum(s),
}


REFUSED_SPARSE = {
    (function, torch.sparse_csr): Raised(
        "RuntimeError", "coalesce expected sparse coordinate tensor layout but got SparseCsr"
    )
    for function in ("sum", "values", "twice")
}
"""What torch says of forwards that there are not for this layout; a backward of something else follows then."""


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("function", SPARSE)
def test_sparse_leaves(function: str, layout: torch.layout) -> None:
    refused = REFUSED_SPARSE.get((function, layout))

    def scenario(run: Run) -> object:
        dense = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
        sparse = (dense.to_sparse() if layout == torch.sparse_coo else dense.to_sparse_csr()).requires_grad_()
        other = leaf(3, 2)
        sparse.register_hook(lambda grad: run.note("hook", grad))
        out = []
        for _ in range(2):
            losses: list[torch.Tensor] = []
            said = run.attempt(lambda losses=losses: losses.append(SPARSE[function](sparse, other)))  # type: ignore[misc]
            assert said == refused
            loss = losses[0] if losses else other.sum()
            out += [said, run.attempt(loss.backward), sparse.grad, other.grad]
        return out

    assert_same_as_eager(scenario)


COMPLEX: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "conjugated": lambda z, x: (z.conj() * z).real,
    "real and imaginary": lambda z, x: z.real * x + z.imag,
    "abs": lambda z, x: z.abs() + x,
    "mixed": lambda z, x: (z * x).abs(),
    "product": lambda z, x: (z @ z.mH).real,
    "viewed as real": lambda z, x: torch.view_as_real(z * 2).sum(-1) * x,
    "from polar": lambda z, x: torch.polar(x, x).angle() + z.real,
    "physical": lambda z, x: z.conj().resolve_conj().imag,
    "lazy neg": lambda z, x: z.conj().imag * x,
    "conjugate leaf gradient": lambda z, x: (z.conj() * 1j).real,
    "fft": lambda z, x: torch.fft.fft2(z * x).abs(),
    "cat real and complex": lambda z, x: torch.cat([z, x]).abs(),
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("function", COMPLEX)
def test_complex(function: str, kept: bool) -> None:
    def scenario(run: Run) -> object:
        z, x = leaf(3, 3, dtype=torch.complex64), leaf(3, 3)
        if kept:
            for tensor in (z, x):
                tensor.register_hook(lambda grad: run.note(grad, grad.is_conj(), grad.is_neg()))
        out = []
        for _ in range(2):
            loss = COMPLEX[function](z, x).sum()
            out += [run.attempt(loss.backward)]
            out += [(g, g.is_conj(), g.is_neg()) for g in (z.grad, x.grad) if g is not None]
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize(
    "given", ["conj", "neg", "expanded", "complex for real", "real for complex", "half", "meta"]
)
def test_a_gradient_given_that_is_out_of_the_ordinary(given: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf(3, dtype=torch.complex64 if given in ("conj", "real for complex") else torch.float32)
        gradient = {
            "conj": torch.ones(3, dtype=torch.complex64).mul(1j).conj(),
            "neg": torch._neg_view(torch.ones(3)),
            "expanded": torch.ones(1).expand(3),
            "complex for real": torch.ones(3, dtype=torch.complex64),
            "real for complex": torch.ones(3),
            "half": torch.ones(3).half(),
            "meta": torch.ones(3, device="meta"),
        }[given]
        x.register_hook(lambda grad: run.note(grad))
        out = x.view_as(x)
        return (
            run.attempt(lambda: out.backward(gradient, retain_graph=True)),
            run.attempt(lambda: x.backward(gradient)),
            run.attempt(lambda: torch.autograd.grad(out * 2, [x, out], gradient, allow_unused=True)),
            x.grad,
            None if x.grad is None else (x.grad.is_conj(), x.grad.is_neg()),
        )

    # torch refuses these before the engine sees them.
    is_refused = given in ("complex for real", "real for complex", "meta")
    assert_same_as_eager(scenario, Expected(captures=not is_refused))


def test_meta_tensors() -> None:
    def scenario(run: Run) -> object:
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3), torch.nn.GELU()).to("meta")
        x = torch.ones(2, 4, device="meta", requires_grad=True)
        with run.backward():
            for _ in range(2):
                model(x).sum().backward()
        return x.grad, [parameter.grad for parameter in model.parameters()]

    assert_same_as_eager(scenario)


def test_fake_tensors() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def scenario(run: Run) -> object:
        with FakeTensorMode():
            x = torch.randn(3, 4, requires_grad=True)
            w = torch.randn(4, 4, requires_grad=True)
            with run.backward():
                torch.tanh(x @ w).sum().backward()
            grads: list[Any] = [x.grad, w.grad]
        return [(type(g), tuple(g.shape), g.stride(), str(g.device)) for g in grads]

    assert_same_as_eager(scenario)


IN_PLACE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "slice": lambda base, x: _written(base, lambda b: b[:1].mul_(x[:1])),
    "view of a view": lambda base, x: _written(base, lambda b: b.view(-1)[2:5].view(3).copy_(x.view(-1)[:3])),
    "copy over all": lambda base, x: _written(base, lambda b: b.copy_(x)),
    "setitem": lambda base, x: _written(base, lambda b: b.__setitem__((0, slice(None)), x[0] * 2)),
    "masked": lambda base, x: _written(base, lambda b: b.masked_fill_(x.detach() > 0, 0.5)),
    "real of complex": lambda base, x: _written(base.to(torch.complex64), lambda b: b.real.mul_(x)).abs(),
    "transposed": lambda base, x: _written(base, lambda b: b.t().add_(x)),
    "one of several": lambda base, x: _written(base, lambda b: b.select(0, 0).add_(b.select(0, 1))),
    "twice": lambda base, x: _written(base, lambda b: (b[0].mul_(2), b[:, 1].mul_(x[0]))),
    "through squeeze": lambda base, x: _written(base, lambda b: b.unsqueeze(0).squeeze().exp_()),
}


def _written(base: torch.Tensor, write: Callable[[torch.Tensor], object]) -> torch.Tensor:
    write(base)
    return base


@pytest.mark.parametrize("view_replay", [False, True])
@pytest.mark.parametrize("write", IN_PLACE)
def test_in_place_on_views(write: str, view_replay: bool) -> None:
    def scenario(run: Run) -> object:
        base, x = leaf(3, 3), leaf(3, 3)
        out = []
        with torch.autograd.grad_mode._force_original_view_tracking(view_replay):
            for _ in range(2):
                middle = base * 1
                middle.retain_grad()
                middle.register_hook(lambda grad: run.note("before", grad))
                changed = IN_PLACE[write](middle, x)
                changed.retain_grad()
                changed.register_hook(lambda grad: run.note("after", grad))
                loss = (changed * changed).sum() + base.sum()
                out += [run.attempt(lambda loss=loss: loss.backward(retain_graph=True))]  # type: ignore[misc]
                out += [base.grad, x.grad, middle.grad, changed.grad]
                out += [
                    run.attempt(lambda loss=loss: torch.autograd.grad(loss, [x, base], create_graph=True))  # type: ignore[misc]
                ]
        return out

    assert_same_as_eager(scenario)


@pytest.mark.parametrize("roots", ["sum of parts", "several", "one undefined", "unbind", "split unused"])
def test_several_outputs_and_undefined_gradients(roots: str) -> None:
    def scenario(run: Run) -> object:
        x = leaf(4, 3)
        values, _ = x.sort(0)
        low, high = torch.aminmax(x)
        parts = x.unbind(0)
        q, r = torch.linalg.qr(x)
        for tensor in (values, low, high, *parts, q, r):
            tensor.register_hook(lambda grad: run.note(grad))
        given: list[Any] = [None, torch.ones(3)]
        calls: dict[str, Callable[[], object]] = {
            "sum of parts": lambda: (low * high + values.sum() + q.sum()).backward(),
            "several": lambda: torch.autograd.backward([low, parts[1]], given),
            "one undefined": lambda: r.sum().backward(),
            "unbind": lambda: (parts[0] * parts[2]).sum().backward(),
            "split unused": lambda: torch.autograd.grad([high, low], [x, values], allow_unused=True),
        }
        return run.attempt(calls[roots]), x.grad

    assert_same_as_eager(scenario)
