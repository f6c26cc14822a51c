"""Turns templates into text. The only place that knows jinja2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from ..model.node import Model
from .documentation import documentation
from .file_header import MARK, comment_header, fingerprint, markdown_header
from .node_view import NodeView, view_node

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "templates"
"""Beside ``codegen`` both in the repository and in the installed package."""

_COMMENT = {".cpp": "//", ".h": "//", ".py": "#", ".pyi": "#"}


@dataclass(frozen=True)
class Renderer:
    """Renders the templates of one folder for one model."""

    model: Model
    environment: jinja2.Environment
    line_directives: bool = True
    """Whether formulas carry ``#line``."""

    @cached_property
    def views(self) -> dict[str, NodeView]:
        """What the C++ templates print of each node, by name."""
        return {node.name: view_node(node, self.model.library) for node in self.model.nodes}

    @cached_property
    def docstrings(self) -> dict[str, str]:
        """The docstring of each operator, by name."""
        return {node.name: documentation(node, self.model.library) for node in self.model.nodes}

    def render(self, template: str, path: str, **variables: Any) -> str:
        """The text of the output file ``path``: its header, then ``template`` over ``variables``.

        Each template may name the `Library`. The header carries a fingerprint of the text below it, so that an edit by
        hand shows.
        """
        library = self.model.library
        body = self.environment.get_template(template).render(header=MARK, library=library, **variables)
        origin = f"{library.yaml_name} of {library.name} {library.version}"
        comment = _COMMENT.get(Path(path).suffix)
        if comment is None:
            header = markdown_header(origin)
        else:
            header = comment_header(comment, origin, template, fingerprint(body))
        return body.replace(MARK, header, 1)


def make_renderer(model: Model, templates: Path = TEMPLATES, line_directives: bool = True) -> Renderer:
    """A renderer over ``templates`` in which an undefined variable is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return Renderer(model, environment, line_directives)
