"""torch as a library: its operators, what its formulas may name and what links, and what code for it is called."""

from __future__ import annotations

from . import names
from .model.helpers import ASK_REQUIRES_GRAD, HELPERS
from .model.library import Library
from .model.link_facts import LinkFacts
from .preconditions import TORCH_TABLE, TORCH_TABLE_NAME
from .torch_install.cache import Cache, content_key, own_sources
from .torch_install.exports import callable_helpers, library_identity
from .torch_install.locate import TorchInstall
from .torch_install.node_structs import NAMESPACE as STRUCTS_NAMESPACE
from .torch_install.operators import Operators, load_operators
from .torch_install.vocabulary import DECLARING_HEADERS, HELPERS_NAMESPACE, Vocabulary, load_vocabulary


def torch_library(install: TorchInstall, operators: Operators, link_facts: LinkFacts) -> Library:
    """The library of an installed torch."""
    return Library(
        name="torch",
        version=install.version,
        yaml_name=install.derivatives_yaml.name,
        namespace=names.NAMESPACE,
        python_module=names.OPERATORS_MODULE,
        structs="::".join(STRUCTS_NAMESPACE),
        formula_namespaces=("at", "torch::autograd", HELPERS_NAMESPACE),
        operators=operators,
        link_facts=link_facts,
        helpers=HELPERS,
        ask_requires_grad=ASK_REQUIRES_GRAD,
        preconditions=TORCH_TABLE,
        preconditions_name=TORCH_TABLE_NAME,
    )


def load_names(install: TorchInstall, cache: Cache) -> tuple[Operators, Vocabulary]:
    """The operators and every other name that formulas may use."""

    def make() -> tuple[Operators, Vocabulary]:
        operators = load_operators(install)
        return operators, load_vocabulary(install, operators)

    headers = (install.include / header for header in DECLARING_HEADERS)
    key = content_key(
        install.native_functions_yaml,
        install.helpers_header,
        *headers,
        install.torchgen / "model.py",
        *own_sources("torch_install", "parse"),
    )
    return cache.fetch("vocabulary", key, make)


def find_link_facts(install: TorchInstall, vocabulary: Vocabulary, cache: Cache | None = None) -> LinkFacts:
    """Which functions of formulas exist, and which of them link."""
    cache = cache or Cache()
    key = content_key(
        library_identity(install.cpu_library),
        install.helpers_header,
        *own_sources("torch_install/exports.py"),
    )
    exported = cache.fetch("exports", key, lambda: callable_helpers(install))
    return LinkFacts(_helper_names(vocabulary), exported | frozenset(HELPERS))


def _helper_names(vocabulary: Vocabulary) -> frozenset[str]:
    """Functions and constants that are made for formulas alone."""
    prefix = f"{HELPERS_NAMESPACE}::"
    constants = {name.removeprefix(prefix) for name in vocabulary.constants if name.startswith(prefix)}
    return vocabulary.helpers | constants
