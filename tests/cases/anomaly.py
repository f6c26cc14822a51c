"""Anomaly mode."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

from tests.cases.registry import PYTORCH, Results, RunBackward, case
from tests.cases.values import applied, grad_of, leaf, raised_by


@case(report=PYTORCH + "pull/149897")
def anomaly_nan_later_masked(run_backward: RunBackward) -> Results:
    """The traced check ran only at the end, unlike eager.

    Right: a NaN in the middle is reported even if a later hook removes it.
    """
    x = leaf(3, seed=5)
    with torch.autograd.detect_anomaly():
        h = x * 0
        h.register_hook(torch.nan_to_num)
        loss = (h.sqrt() * 0).sum()
        results = raised_by(run_backward, loss.backward, "nan values")
    return {**results, "x": x.grad}


@case(report=PYTORCH + "issues/83117")
def anomaly_without_nan_check(run_backward: RunBackward) -> Results:
    """Wanted forward traces without the NaN check; right: check_nan=False lets the NaN through."""
    x = leaf(3, seed=6)
    with torch.autograd.detect_anomaly(check_nan=False):
        loss = ((x * 0).sqrt() * 0).sum()
        run_backward(loss.backward)
    return {"nan": bool(grad_of(x).isnan().all())}


@case()
def anomaly_traces_name_the_forward(run_backward: RunBackward) -> Results:
    """The traceback of the forward of the node that failed, and of the node that made it under create_graph."""

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Tensor) -> Tensor:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            raise ValueError("fails on purpose")

    x = leaf(3, seed=6)
    results: Results = {}
    with torch.autograd.detect_anomaly():
        results["function"] = raised_by(run_backward, applied(Fails, x.sin()).sum().backward, "on purpose")
        y = (x * 0).sqrt().sum()
        results["builtin"] = raised_by(run_backward, y.backward, "returned nan values")
        z = x.sin().sum()
        (g,) = run_backward(lambda: torch.autograd.grad(z, x, create_graph=True))
        bad = ((g * 0).sqrt() * 0).sum()
        results["of gradient"] = raised_by(run_backward, bad.backward, "nan values")
    run_backward(x.sin().sum().backward)
    return {**results, "x": x.grad}


@case()
def anomaly_in_half_of_the_program(run_backward: RunBackward) -> Results:
    """The mode on in the forward alone, and in the backward alone."""
    x = leaf(3, seed=6)
    results: Results = {}
    with torch.autograd.detect_anomaly():
        loss = ((x * 0).sqrt() * 0).sum()
    run_backward(loss.backward)
    results["forward"] = x.grad
    x.grad = None
    loss = ((x * 0).sqrt() * 0).sum()
    with torch.autograd.detect_anomaly():
        results["backward"] = raised_by(run_backward, loss.backward)
    return results


@case()
def nans_without_anomaly_mode(run_backward: RunBackward) -> Results:
    """Infinities and NaNs pass through as they are; where() does not hide them."""
    x = torch.tensor([0.0, -1.0, 4.0, float("inf"), float("nan")], requires_grad=True)
    loss = torch.where(x > 1, x.sqrt(), 0.0).sum() + (x.log() * 0).sum() + x.pow(0.5).nansum()
    run_backward(loss.backward)
    return {"x": x.grad}


@case()
def events_of_what_is_left_to_the_engine(run_backward: RunBackward) -> Results:
    """What a profiler shows of a backward that no plan runs: anomaly mode is on, or nobody captures it."""
    x = leaf(3, seed=6)
    run_backward(x.exp().sum().backward)
    seen: list[str] = []
    for step in range(2):
        loss = x.sin().sum()
        with torch.autograd.profiler.profile() as profile, torch.autograd.set_detect_anomaly(step == 0):
            if step == 0:
                run_backward(loss.backward)
            else:
                loss.backward()
        seen += [f"{step} {event.name}" for event in profile.function_events]
    return {"seen": seen, "x": x.grad}


@case()
def anomaly_switched_on_by_hook(run_backward: RunBackward) -> Results:
    """A hook switches the mode on while the backward runs: the nodes after it are checked."""
    x = leaf(3, seed=6)
    loss = ((x * 0).sqrt() * 0).sum()
    loss.register_hook(lambda g: torch.set_anomaly_enabled(True, True))
    try:
        results = raised_by(run_backward, loss.backward)
    finally:
        torch.set_anomaly_enabled(False, True)
    return {**results, "x": x.grad}


@case()
def anomaly_with_nan_given(run_backward: RunBackward) -> Results:
    """The gradient that the caller gives is NaN already: the error names the first node that returns one."""
    x = leaf(3, seed=6)
    results: Results = {}
    with torch.autograd.detect_anomaly():
        y = x.sin()
        given = torch.tensor([1.0, float("nan"), 1.0])
        results["one root"] = raised_by(run_backward, lambda: y.backward(given), "nan values")
        y, z = x.sin(), x.exp()
        with warnings.catch_warnings():
            # The traceback is that of whoever asks for the backward.
            warnings.simplefilter("ignore")
            results["two roots"] = raised_by(
                run_backward, lambda: torch.autograd.backward([y, z], [given, given]), "nan values"
            )
    return results
