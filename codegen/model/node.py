"""The checked model of a node: what every emitter reads.

Plain frozen records; nothing here opens files or knows how output looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .. import names
from ..parse.formula import Formula as ParsedFormula
from ..resolve.records import Input, Output
from .library import Library
from .precondition import Precondition
from .saved_types import Component, SavedType


class Mode(Enum):
    """The two ways in which a functional backward is emitted."""

    INLINE = "inline"
    """The formula itself is compiled."""
    DELEGATE = "delegate"
    """A short-lived node struct is filled and its ``apply`` called."""


class StepKeys(Enum):
    """The keys that are left out while the formulas of a live node run; the value is what C++ calls it."""

    ALL = "AllKeys"
    """None are."""
    BELOW_AUTOGRAD = "BelowAutograd"
    """Those of autograd."""
    BELOW_AUTOGRAD_IF_CONTIGUOUS = "BelowAutogradIfContiguous"
    """Those of autograd, if the gradients are contiguous."""
    BELOW_AD_INPLACE_OR_VIEW = "BelowADInplaceOrView"
    """Those of autograd, and ADInplaceOrView, that of in-place operations and views."""


@dataclass(frozen=True)
class Argument:
    """One schema argument that carries a saved value or a component of one."""

    name: str
    """``self_options_dtype``"""
    component: Component


@dataclass(frozen=True)
class SavedValue:
    """One value that the forward keeps for the node.

    Example: ``SavedValue("self_sym_sizes", <sym_int_list>, "self.sym_sizes()", ..., field="self_sym_sizes")``.
    """

    name: str
    type: SavedType
    expression: str
    """How the forward reads it, ``self.sym_sizes()``; for a list size, ``self.size()``."""
    from_output: bool
    field: str
    """The node struct's field, ``self_``."""
    arguments: tuple[Argument, ...]

    @property
    def variable(self) -> str:
        """The C++ variable that holds it."""
        return names.argument(self.name)

    @property
    def has_length(self) -> bool:
        """Whether it is a list, or a composite value that ends with one."""
        return self.arguments[-1].component.schema.endswith("[]")

    @property
    def meaning(self) -> str:
        """What the value is, for people."""
        source = "result" if self.from_output else "argument"
        if self.type.key == "list_size":
            return f"length of the argument '{self.name.removesuffix('_size')}'"
        if self.expression == self.name:
            return f"the forward's {source} '{self.name}'"
        return f"'{self.expression}' of the forward"


@dataclass(frozen=True)
class Formula:
    """The rule for the gradient of one input, or of several at once."""

    inputs: tuple[str, ...]
    written: str
    """As in the YAML."""
    resolved: str
    """Over saved values: what is compiled."""
    line: int
    """Line of the YAML where it starts."""
    lines: tuple[str, ...]
    """`resolved`, broken where the YAML has its line breaks."""
    parsed: ParsedFormula
    """The tree of `resolved` with its names, calls and methods; its places are those of `written`."""


@dataclass(frozen=True)
class ModeChoice:
    """The way a node is emitted and why."""

    mode: Mode
    reason: str
    """``every name resolves`` or ``'mm_mat1_backward' is not exported``."""


@dataclass(frozen=True)
class NodeSpec:
    """One autograd node."""

    name: str
    """``MulBackward0``"""
    operator: str
    """``mul.Tensor``"""
    forward_schema: str
    dispatch_key: str
    """``Default``, or the key whose derivatives these are."""
    origin: str
    """``entry``, ``view_copy`` or ``foreach``."""
    entry_schema: str
    """Schema of the YAML entry, which for derived nodes is another operator's."""
    line: int
    """Line of the YAML entry."""
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    named_gradients: tuple[str, ...]
    formulas: tuple[Formula, ...]
    saved: tuple[SavedValue, ...]
    choice: ModeChoice
    struct: str
    """Qualified name of the node struct: ``torch::autograd::generated::MulBackward0``."""
    step_keys: StepKeys
    """The keys that are left out where a live node is run by its formulas."""
    step_operators: tuple[str, ...]
    """The operators that are then called beneath these keys, by name without overload; none with all keys."""
    preconditions: tuple[Precondition, ...] = ()
    """What its arguments must satisfy together, in the order in which it is checked."""

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """All arguments after ``grads`` and ``needs_input_grad``, in order."""
        return tuple(argument for saved in self.saved for argument in saved.arguments)

    @property
    def schema(self) -> str:
        """Schema of the functional operator, without a namespace."""
        parts = [
            "Tensor?[] grads",
            f"bool[{len(self.inputs)}] needs_input_grad",
            *(f"{argument.component.schema} {argument.name}" for argument in self.arguments),
        ]
        return f"{self.name}({', '.join(parts)}) -> Tensor[]"

    @property
    def gradient_count(self) -> int | None:
        """How many gradients come in; None where the forward returns a list of any length."""
        return None if any(output.is_list for output in self.outputs) else len(self.outputs)

    @property
    def is_per_element(self) -> bool:
        """Whether a formula gives the gradient of one element of a list: ``grads[i] * other[i]``."""
        return self.origin == "foreach" or any(formula.parsed.uses("i") for formula in self.formulas)

    @property
    def has_list_inputs(self) -> bool:
        """Whether how many edges a node has depends on lists that its forward was given."""
        return any(one.is_list for one in self.inputs)

    def readers(self, saved: SavedValue) -> tuple[int, ...]:
        """The positions of the inputs whose formula reads a saved value."""
        positions = {one.name: position for position, one in enumerate(self.inputs)}
        readers = {
            positions[name]
            for formula in self.formulas
            if formula.parsed.uses(saved.name)
            for name in formula.inputs
        }
        return tuple(sorted(readers))


@dataclass(frozen=True)
class Skipped:
    """An entry of the YAML that makes no node, and why."""

    schema: str
    reason: str
    line: int


@dataclass(frozen=True)
class Model:
    """Everything that the emitters need."""

    library: Library
    """Whose nodes they are."""
    nodes: tuple[NodeSpec, ...]
    """By name."""
    skipped: tuple[Skipped, ...]
    yaml_hash: str = ""
    """Of the content of the library's YAML: which derivatives these are."""
    notices: tuple[str, ...] = ()
    """What whoever changed the derivatives should know, as printed."""
