"""How far below the dispatcher's keys for autograd a live node may be run by its formulas.

A backward that builds no graph needs nothing of autograd's keys, and leaving them out is a good part of what a small
operator costs. But what they do can be seen later: beneath the key of in-place operations and views, no view knows its
base; above it, an operator's kernel that is itself made of in-place operations leaves a version on its result that the
engine's run does not leave, since there the operator as a whole went through autograd. So a formula may run

* beneath both keys, if what it returns was made by one operator that returns no view,
* beneath autograd's alone, if it is made of views, or written to in place by the helper that made it,
* beneath autograd's alone where gradients are contiguous, if it reshapes one, which then is a view too,
* with all keys, otherwise, and wherever it is not known which operators a formula calls: somebody may have brought a
  kernel of their own for one of these keys (csrc/nodes/watched_operators.h).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..parse.expression import (
    Binary,
    Braces,
    Call,
    Conditional,
    Expression,
    Index,
    Member,
    Name,
    Unary,
)
from .called_operators import called_operators
from .library import Library
from .node import Formula, StepKeys

_Allowed = frozenset[StepKeys]
_NONE: _Allowed = frozenset()
_RESHAPED: _Allowed = frozenset({StepKeys.BELOW_AUTOGRAD_IF_CONTIGUOUS})
_VIEW: _Allowed = frozenset({StepKeys.BELOW_AUTOGRAD}) | _RESHAPED
_FRESH: _Allowed = frozenset({StepKeys.BELOW_AD_INPLACE_OR_VIEW})
_ANY: _Allowed = _VIEW | _FRESH


def step_keys(formulas: Collection[Formula], library: Library) -> tuple[StepKeys, tuple[str, ...]]:
    """The fewest keys under which all formulas of a node give what they give with all of them.

    With them come the operators whose kernels for the other keys are then left out, by name without overload: a step
    may run so while these kernels are torch's own. With all keys nothing is left out.
    """
    called = called_operators(formulas, library)
    keys = StepKeys.ALL if called is None else _fewest_keys(formulas, library)
    return keys, (called or ()) if keys is not StepKeys.ALL else ()


def _fewest_keys(formulas: Collection[Formula], library: Library) -> StepKeys:
    allowed = _ANY
    for formula in formulas:
        allowed &= _allowed(formula.parsed.root, library)
    for keys in (
        StepKeys.BELOW_AD_INPLACE_OR_VIEW,
        StepKeys.BELOW_AUTOGRAD,
        StepKeys.BELOW_AUTOGRAD_IF_CONTIGUOUS,
    ):
        if keys in allowed:
            return keys
    return StepKeys.ALL


def _allowed(root: Expression, library: Library) -> _Allowed:
    """The ways in which an expression can be computed so that nobody sees it in its value."""
    match root:
        case Name() | Index():
            # A gradient or a saved value as it came.
            return _ANY
        case Unary(operator="-") | Binary(operator="+" | "-" | "*" | "/"):
            return _FRESH
        case Conditional(positive=positive, negative=negative):
            return _allowed(positive, library) & _allowed(negative, library)
        case Braces(items=items, type=Name(path=(*_, "tuple"))):
            return _allowed_for_all(items, library)
        case Call(function=Member(receiver=receiver, name=name)):
            return _allowed_for_operator(name, receiver, library)
        case Call(function=Name() as function, arguments=arguments):
            return _allowed_for_call(function, arguments, library)
    return _NONE


def _allowed_for_all(items: Iterable[Expression], library: Library) -> _Allowed:
    allowed = _ANY
    for item in items:
        allowed &= _allowed(item, library)
    return allowed


def _allowed_for_call(function: Name, arguments: tuple[Expression, ...], library: Library) -> _Allowed:
    name = function.path[-1]
    if name in ("tuple", "Tensor") and not arguments:
        # Undefined tensors.
        return _ANY
    if name == "make_tuple":
        return _allowed_for_all(arguments, library)
    if function.plain is not None and name in library.helpers:
        helper = library.helpers[name]
        allowed = _VIEW if helper.gives_views or helper.writes else _ANY
        return allowed if helper.returned is None else allowed & _allowed(arguments[helper.returned], library)
    if function.plain is not None or function.path[0] == "at":
        return _allowed_for_operator(name, arguments[0] if arguments else None, library)
    return _NONE


def _allowed_for_operator(name: str, first: Expression | None, library: Library) -> _Allowed:
    name = name.removesuffix("_symint")
    if name == "reshape" and isinstance(first, Name) and first.plain == "grad":
        return _RESHAPED
    known = [operator for operator in library.operators.by_name.get(name, ()) if not operator.schema.is_out]
    if not known or any(operator.is_composite or operator.schema.is_inplace for operator in known):
        return _NONE
    if any(all(not one.is_tensor for one in operator.schema.arguments) for operator in known):
        # What makes a tensor of nothing does not go through autograd, which knows an operator by its tensors.
        return _NONE
    if not any(operator.schema.is_view for operator in known):
        return _FRESH
    if first is not None and all(operator.schema.is_view for operator in known):
        return _VIEW & _allowed(first, library)
    return _NONE
