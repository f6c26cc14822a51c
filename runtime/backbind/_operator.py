"""The face of an operator: what ``backbind.ops.MulBackward0`` can tell about itself.

The type itself is compiled, for the sake of its call path; its descriptive side needs the generated records and is
written here, as properties that are put on the type when the package is imported.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import torch

from backbind import _C
from backbind._records import ArgumentRecord, FormulaRecord, NodeRecord, Source


@runtime_checkable
class FunctionalOperator(Protocol):
    """A node's backward as a pure function.

    Calling it runs the backward: ``operator(grads, needs_input_grad, *saved)`` returns one gradient for each
    differentiable input (for a list input, one for each element), None where it is not wanted or is zero.
    """

    @property
    def name(self) -> str:
        """Name of the node: ``MulBackward0``."""
        ...

    @property
    def schema(self) -> str:
        """Schema in the dispatcher, with its namespace."""
        ...

    @property
    def mode(self) -> str:
        """``inline`` where the formula itself is compiled, ``delegate`` where the node struct is called."""
        ...

    @property
    def overload(self) -> torch._ops.OpOverload:
        """The same operator in the dispatcher: what a graph calls."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Differentiable arguments of the forward, in the order of ``needs_input_grad``."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Results of the forward whose gradients come in, in the order of ``grads``."""
        ...

    @property
    def saved(self) -> tuple[ArgumentRecord, ...]:
        """The arguments after ``needs_input_grad``, which carry the saved values."""
        ...

    @property
    def formulas(self) -> tuple[FormulaRecord, ...]:
        """The rules, as written in the YAML."""
        ...

    @property
    def source(self) -> Source:
        """File and line of the entry."""
        ...

    @property
    def record(self) -> NodeRecord:
        """Everything that is known about the node."""
        ...

    def delegate(self, *args: Any, **kwargs: Any) -> list[torch.Tensor | None]:
        """Run the node struct itself, whatever the mode: the reference that an inline formula is compared with."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor | None]: ...


def _record(operator: _C.Operator) -> NodeRecord:
    # Only introspection needs records, and they are large: those of an area are imported when one of them is asked for.
    from backbind.ops._areas import AREA_OF

    records: dict[str, NodeRecord] = import_module(f"backbind.ops._areas.{AREA_OF[operator.name]}").RECORDS
    return records[operator.name]


def signature(record: NodeRecord) -> inspect.Signature:
    """The signature of an operator, as its stub has it."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    annotations = {
        "grads": "Sequence[Tensor | None]",
        "needs_input_grad": "Sequence[bool]",
        **{argument.name: argument.annotation for argument in record.arguments},
    }
    return inspect.Signature(
        [inspect.Parameter(name, kind, annotation=annotation) for name, annotation in annotations.items()],
        return_annotation="list[Tensor | None]",
    )


_DESCRIPTION: dict[str, property] = {
    "record": property(_record, doc="Everything that is known about the node."),
    "inputs": property(lambda self: _record(self).inputs, doc="Differentiable arguments of the forward."),
    "outputs": property(lambda self: _record(self).outputs, doc="Results whose gradients come in."),
    "saved": property(lambda self: _record(self).arguments, doc="The arguments that carry the saved values."),
    "formulas": property(lambda self: _record(self).formulas, doc="The rules, as written in the YAML."),
    "source": property(lambda self: _record(self).source, doc="File and line of the entry."),
    "__doc__": property(lambda self: _record(self).doc),
    "__signature__": property(lambda self: signature(_record(self))),
    "__module__": property(lambda _: "backbind.ops"),
}


def _call(self: _C.Operator, /, *args: Any, **kwargs: Any) -> list[torch.Tensor | None]:
    """Run the backward: one gradient for each differentiable input, None where it is not wanted or is zero."""
    # Dynamo cannot look into compiled code. It inlines this function, and so puts the overload into its graph.
    if torch.compiler.is_dynamo_compiling():
        gradients: list[torch.Tensor | None] = self.overload(*args, **kwargs)
        return gradients
    return self(*args, **kwargs)


def describe_operators() -> None:
    """Give the compiled type its descriptive properties. Called once, at import."""
    for name, attribute in _DESCRIPTION.items():
        setattr(_C.Operator, name, attribute)
    _C.Operator._describe_call(_call)
