"""Whether everything that one formula names exists, and whether it keeps sizes symbolic."""

from __future__ import annotations

from ..parse.expression import Literal, Unary
from ..parse.formula import CallUse, Formula, MethodUse, NameUse
from ..parse.nearest import did_you_mean, did_you_mean_one_of
from ..parse.report import Report
from ..torch_install.vocabulary import Vocabulary, candidates
from .block import Rule, misspelt_rule
from .scope import Scope

SYMBOLIC = {"sizes": "sym_sizes", "strides": "sym_strides", "size": "sym_size"}
"""Members of Tensor that give plain integers, and the ones that keep sizes symbolic."""


def check_rule(rule: Rule, scope: Scope, vocabulary: Vocabulary, report: Report) -> None:
    """Report every name of ``rule`` that means nothing in ``scope``."""
    formula = rule.formula
    for use in formula.free_names:
        if use.name not in scope.names and not vocabulary.is_constant(use.name):
            message, hint = scope.explain(use, vocabulary, misspelt_rule(formula))
            report.error(formula.span(use), message, hint)
    check_vocabulary(formula, scope.names, vocabulary, report)
    if scope.forward:
        return
    for method in formula.methods:
        if method.name in SYMBOLIC and _gives_integers(method, scope):
            replacement = SYMBOLIC[method.name]
            report.error(
                formula.span(method),
                f"'.{method.name}()' gives plain integers, which fails when sizes are symbolic",
                f"write '.{replacement}()'",
            )


def check_vocabulary(
    formula: Formula, variables: frozenset[str], vocabulary: Vocabulary, report: Report
) -> None:
    """Report unknown functions, methods and qualified names, which do not depend on the operator."""
    for call in formula.calls:
        if not vocabulary.is_function(call.name):
            message, hint = _explain_call(call, variables, vocabulary)
            report.error(formula.span(call), message, hint)
    for use in formula.qualified_names:
        if not vocabulary.is_constant(use.name):
            message, hint = _explain_qualified(use, vocabulary)
            report.error(formula.span(use), message, hint)
    for method in formula.methods:
        if method.name not in vocabulary.methods:
            message, hint = _explain_method(method, vocabulary)
            report.error(formula.span(method), message, hint)


def _explain_call(call: CallUse, variables: frozenset[str], vocabulary: Vocabulary) -> tuple[str, str | None]:
    name = call.name
    if name in variables:
        return f"'{name}' is a variable, not a function", None
    namespace = _unknown_namespace(name, vocabulary)
    if namespace is not None:
        return namespace
    message = f"there is no function '{name}'"
    plain = name.removesuffix("_symint")
    if plain != name and vocabulary.is_function(plain):
        return message, f"'{plain}' takes no symbolic sizes and has no such form; write '{plain}'"
    if name in vocabulary.methods:
        return message, f"'{name}' is a method; write 'x.{name}(...)'"
    last = name.rpartition("::")[2]
    if "::" in name and vocabulary.is_function(last):
        return message, did_you_mean_one_of([last])
    hint = did_you_mean(name, vocabulary.callable_names) or did_you_mean(last, vocabulary.callable_names)
    return message, hint or "functions are those of ATen and of torch/csrc/autograd/FunctionsManual.h"


def _explain_qualified(use: NameUse, vocabulary: Vocabulary) -> tuple[str, str | None]:
    namespace = _unknown_namespace(use.name, vocabulary)
    if namespace is not None:
        return namespace
    if vocabulary.is_function(use.name):
        return f"'{use.name}' is a function and is not called here", f"write '{use.name}(...)'"
    last = use.name.rpartition("::")[2]
    hint = did_you_mean(use.name, vocabulary.constants) or did_you_mean(last, vocabulary.constant_names)
    return f"there is no constant '{use.name}'", hint


def _unknown_namespace(name: str, vocabulary: Vocabulary) -> tuple[str, str | None] | None:
    """Message and hint if the first part of a qualified name is no namespace or class."""
    first, separator, _ = name.partition("::")
    known = vocabulary.namespaces
    if not separator or first in known:
        return None
    if any(candidate in vocabulary.types for candidate in candidates(first)):
        return None
    return f"there is no namespace '{first}'", did_you_mean(first, known)


def _explain_method(method: MethodUse, vocabulary: Vocabulary) -> tuple[str, str | None]:
    message = f"there is no method '{method.name}'"
    if method.name in vocabulary.functions or method.name in vocabulary.helpers:
        return message, f"'{method.name}' is a function; write '{method.name}(...)'"
    return message, did_you_mean(method.name, vocabulary.methods)


def _gives_integers(method: MethodUse, scope: Scope) -> bool:
    """Whether a size member reads a tensor's sizes: ``.size()`` of a list of numbers has no argument."""
    if method.arguments is None or _is_number_list(method, scope):
        return False
    if method.name != "size":
        return not method.arguments
    return len(method.arguments) == 1 and _is_integer(method.arguments[0])


def _is_integer(node: object) -> bool:
    if isinstance(node, Unary) and node.operator == "-":
        node = node.operand
    return isinstance(node, Literal) and node.text.isdecimal()


def _is_number_list(method: MethodUse, scope: Scope) -> bool:
    for argument in scope.block.operator.schema.formula_arguments:
        if argument.name == method.receiver_name:
            return argument.is_list and not argument.is_tensor
    return False
