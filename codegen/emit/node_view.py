"""What the C++ templates print of one node: ready pieces of text, so that templates hold loops and ifs only."""

from __future__ import annotations

from dataclasses import dataclass

from .. import names
from ..model.asked_inputs import asked_inputs
from ..model.library import Library
from ..model.node import Formula, Mode, NodeSpec, SavedValue
from .preconditions import check_statements

_COLUMNS = 110


@dataclass(frozen=True)
class ArgumentView:
    """One row of the binding's argument list."""

    name: str
    kind: str


@dataclass(frozen=True)
class FormulaView:
    """One formula of an inline node."""

    condition: str
    mask: tuple[str, ...]
    """Elements of ``grad_input_mask``; empty if the formula does not use it."""
    opening: str
    """The code before the formula."""
    line_macro: str
    lines: tuple[str, ...]
    """The formula, broken where the YAML has its line breaks."""
    closing: str
    placements: tuple[str, ...]
    """Statements that put the parts of a tuple in their places."""


@dataclass(frozen=True)
class NodeView:
    """One node, as the C++ templates need it."""

    name: str
    schema: str
    rule_fill: str
    rule: tuple[str, ...]
    mode: str
    reason: str
    is_inline: bool
    input_count: int
    edge_count: str
    """How many gradients come out: ``2`` or ``tensors_size + 1``."""
    gradients: int
    apply_functional: str
    apply_functional_ivalue: str
    delegate_name: str
    """The delegate: it is the functional backward itself unless the node is inline."""
    apply_delegate_ivalue: str
    pack: str
    arguments_name: str
    arguments: tuple[ArgumentView, ...]
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    """Names of the saved values in order."""
    asks_inputs: bool
    """Whether a formula asks a saved input whether it requires grad."""
    operator_values: tuple[str, ...]
    """The saved values as an operator hands them on: such inputs in the state that needs_input_grad says."""
    reads: tuple[str, ...]
    checks: tuple[str, ...]
    edges: tuple[str, ...]
    tensor_fields: tuple[str, ...]
    plain_fields: tuple[str, ...]
    pack_edges: str
    packs: tuple[str, ...]
    prologue: tuple[str, ...]
    formulas: tuple[FormulaView, ...]
    formulas_name: str
    step: str
    step_keys: str
    """The class that leaves dispatch keys out meanwhile."""
    step_operators: tuple[str, ...]
    """Names of the operators that are called beneath them."""
    step_operators_name: str
    live_edge_count: str
    """How many edges a live node has."""
    edge_counter: str
    """The function that tells how many edges a live node has; empty where every one has one for each input, and where
    no step asks."""
    step_guards: tuple[str, ...]
    """Conditions, besides those on saved values, under which a step is left to the live node."""
    step_needs: tuple[str, ...]
    """For each input whether its gradient is needed."""
    step_reads: tuple[str, ...]
    """Statements that find the saved tensors."""
    step_locals: tuple[str, ...]
    """Pointers to them, except to those of lists."""
    step_lists: tuple[str, ...]
    """Saved lists of tensors, which are there or not."""
    step_values: tuple[str, ...]
    """The saved values, as they are handed to the formulas."""

    @property
    def argument_count(self) -> int:
        return len(self.arguments)


def view_node(node: NodeSpec, library: Library) -> NodeView:
    """The view of one node of a library."""
    is_inline = node.choice.mode is Mode.INLINE
    tensors = tuple(saved for saved in node.saved if saved.type.is_tensor)
    asked = asked_inputs(node, library.ask_requires_grad)
    return NodeView(
        name=node.name,
        schema=node.schema,
        rule_fill="=" * max(4, _COLUMNS - 9 - len(node.name)),
        rule=rule_lines(node),
        mode=node.choice.mode.value,
        reason=node.choice.reason,
        is_inline=is_inline,
        input_count=len(node.inputs),
        edge_count=_edge_count(node),
        gradients=-1 if node.gradient_count is None else node.gradient_count,
        apply_functional=names.apply_functional(node.name),
        apply_functional_ivalue=names.apply_functional_ivalue(node.name),
        delegate_name=names.apply_delegate(node.name) if is_inline else names.apply_functional(node.name),
        apply_delegate_ivalue=names.apply_delegate_ivalue(node.name),
        pack=names.pack(node.name),
        arguments_name=names.saved_kinds(node.name),
        arguments=tuple(ArgumentView(one.name, one.component.kind) for one in node.arguments),
        parameters=tuple(f"{saved.type.parameter} {saved.variable}" for saved in node.saved),
        values=tuple(saved.variable for saved in node.saved),
        asks_inputs=bool(asked),
        operator_values=tuple(
            f"needed.input({saved.variable}, needs_input_grad[{asked[saved.name]}])"
            if saved.name in asked
            else saved.variable
            for saved in node.saved
        ),
        reads=tuple(
            f"const auto {saved.variable} = reader.read<{saved.type.value}>();" for saved in node.saved
        ),
        checks=check_statements(node),
        edges=tuple(
            f"edges.add_list(needs_input_grad[{i}], {one.size_name});"
            if one.is_list
            else f"edges.add(needs_input_grad[{i}]);"
            for i, one in enumerate(node.inputs)
        ),
        tensor_fields=tuple(
            f"fill(node->{saved.field}, {saved.variable});" for saved in node.saved if saved.type.is_tensor
        ),
        plain_fields=tuple(
            f"node->{saved.field} = {saved.variable};" for saved in node.saved if not saved.type.is_tensor
        ),
        pack_edges=", ".join(_edges_of_inputs(node)),
        packs=tuple(_pack_statement(saved) for saved in node.saved),
        prologue=_prologue(node) if is_inline else (),
        formulas=tuple(_view_formula(node, formula) for formula in _in_order(node)) if is_inline else (),
        formulas_name=names.formulas(node.name),
        step=names.step(node.name),
        step_keys=node.step_keys.value,
        step_operators=node.step_operators if is_inline else (),
        step_operators_name=names.step_operators(node.name),
        live_edge_count=" + ".join(_edges_of_inputs(node)),
        edge_counter=names.edge_count(node.name) if is_inline and node.has_list_inputs else "",
        step_guards=_step_guards(node),
        step_needs=_step_needs(node),
        step_reads=tuple(_step_read(saved) for saved in tensors),
        step_locals=tuple(saved.variable for saved in tensors if not saved.type.is_list),
        step_lists=tuple(saved.variable for saved in tensors if saved.type.is_list),
        step_values=tuple(
            f"*{saved.variable}" if saved.type.is_tensor else f"node.{saved.field}" for saved in node.saved
        ),
    )


def rule_lines(node: NodeSpec) -> tuple[str, ...]:
    """The rule as written: the schema of the entry, then one line for each formula."""
    lines = [
        node.entry_schema if node.dispatch_key == "Default" else f"{node.entry_schema}  [{node.dispatch_key}]"
    ]
    if node.origin != "entry":
        lines.append(f"{node.origin} of it: {node.forward_schema}")
    for formula in node.formulas:
        text = " ".join(formula.written.split())
        lines.append(f"  {', '.join(formula.inputs)}: {text}")
    return tuple(lines)


def _edge_count(node: NodeSpec) -> str:
    singles = sum(not one.is_list for one in node.inputs)
    sizes = [one.size_name or "" for one in node.inputs if one.is_list]
    return " + ".join([*sizes, str(singles)] if singles or not sizes else sizes)


def _edges_of_inputs(node: NodeSpec) -> tuple[str, ...]:
    """For each input how many edges of a live node are its."""
    return tuple(f"node.{names.list_size_field(one.name)}" if one.is_list else "1" for one in node.inputs)


def _pack_statement(saved: SavedValue) -> str:
    if saved.type.is_list:
        write = "write_optional_list" if saved.type.has_optional_elements else "write_list"
        return f"writer.{write}(node.{saved.field}, node.{names.released_flag(saved.name)});"
    return f"writer.write(node.{saved.field});"


def _step_guards(node: NodeSpec) -> tuple[str, ...]:
    if not node.is_per_element:
        return ()
    lists = (one.name for one in node.inputs if one.is_list)
    return tuple(f"frame.gradients.size() < node.{names.list_size_field(name)}" for name in lists)


def _step_needs(node: NodeSpec) -> tuple[str, ...]:
    if not node.has_list_inputs:
        return tuple(f"frame.needs_input_grad[{position}] != 0" for position in range(len(node.inputs)))
    return tuple(
        f"flags.list(node.{names.list_size_field(one.name)})" if one.is_list else "flags.one()"
        for one in node.inputs
    )


def _step_read(saved: SavedValue) -> str:
    if saved.type.is_list:
        return (
            f"const auto {saved.variable} = saved_list<{saved.type.value}>("
            f"node.{saved.field}, node.{names.released_flag(saved.name)});"
        )
    return f"const Tensor* {saved.variable} = torch_private::saved_tensor(node.{saved.field});"


def _prologue(node: NodeSpec) -> tuple[str, ...]:
    """Locals that formulas may name: gradients, retain_variables, and where each list of gradients begins."""
    parsed = [formula.parsed for formula in node.formulas]
    lines = []
    if any(one.uses("grad") for one in parsed):
        lines.append("const auto& grad = grads[0];")
    for position, name in enumerate(node.named_gradients):
        if any(one.uses(name) for one in parsed):
            lines.append(f"const auto& {name} = grads[{position}];")
    if any(one.uses("retain_variables") for one in parsed):
        # A functional backward leaves its arguments as they are, so buffers may never be reused.
        lines.append("constexpr bool retain_variables = true;")
    if any(_is_zero_without_gradients(node, formula) for formula in node.formulas):
        lines.append("const bool any_grad_defined = any_defined(grads);")
    begin = ""
    for one in node.inputs:
        if node.has_list_inputs:
            lines.append(f"[[maybe_unused]] const size_t {one.name}_begin = {begin or '0'};")
        begin = f"{one.name}_begin + {one.size_name or '1'}"
    return tuple(lines)


def _in_order(node: NodeSpec) -> list[Formula]:
    """The formulas in the order in which torch's own nodes compute them: by the names of their inputs.

    The order decides the order of the nodes that a double backward has, and so that of its floating-point sums.
    """
    return sorted(node.formulas, key=lambda formula: ", ".join(formula.inputs))


def _view_formula(node: NodeSpec, formula: Formula) -> FormulaView:
    positions = [[one.name for one in node.inputs].index(name) for name in formula.inputs]
    flags = tuple(f"needs_input_grad[{position}]" for position in positions)
    opening, closing, placements = _assignment(node, formula, positions)
    return FormulaView(
        condition=" || ".join(flags),
        mask=flags if formula.parsed.uses("grad_input_mask") else (),
        opening=opening,
        line_macro=names.line_macro(node.name, formula.inputs),
        lines=formula.lines,
        closing=closing,
        placements=placements,
    )


def _assignment(node: NodeSpec, formula: Formula, positions: list[int]) -> tuple[str, str, tuple[str, ...]]:
    """The code around a formula: what comes before, what comes after, and how results reach their places."""
    if len(formula.inputs) > 1:
        return (
            "    auto gradients = (",
            "    );",
            tuple(
                f"if (needs_input_grad[{position}]) {_place(node, position, f'std::get<{part}>(gradients)')}"
                for part, position in enumerate(positions)
            ),
        )
    position = positions[0]
    one = node.inputs[position]
    if node.is_per_element:
        return (
            (
                f"    for (size_t i = 0; i < {one.size_name}; ++i) {{\n"
                "      if (!grads[i].defined()) continue;\n"
                f"      grad_inputs[{one.name}_begin + i] = ("
            ),
            "      );\n    }",
            (),
        )
    if one.is_list:
        return "    std::vector<Tensor> gradients = (", "    );", (_place(node, position, "gradients"),)
    guard = "if (any_grad_defined) " if _is_zero_without_gradients(node, formula) else ""
    return f"    {guard}grad_inputs[{_slot(node, position)}] = (", "    );", ()


def _is_zero_without_gradients(node: NodeSpec, formula: Formula) -> bool:
    """Whether a node struct leaves the formula out when all gradients are undefined.

    It does so where the formula is for one tensor, unless it says that the derivative is not implemented: that is an
    error whatever comes in.
    """
    if node.is_per_element or len(formula.inputs) != 1:
        return False
    one = next(one for one in node.inputs if one.name == formula.inputs[0])
    return not one.is_list and all(call.name != "not_implemented" for call in formula.parsed.calls)


def _slot(node: NodeSpec, position: int) -> str:
    return f"{node.inputs[position].name}_begin" if node.has_list_inputs else str(position)


def _place(node: NodeSpec, position: int, value: str) -> str:
    one = node.inputs[position]
    if one.is_list:
        return (
            f'place_list("{node.name}", grad_inputs, {one.name}_begin, {one.size_name}, std::move({value}));'
        )
    return f"grad_inputs[{_slot(node, position)}] = std::move({value});"
