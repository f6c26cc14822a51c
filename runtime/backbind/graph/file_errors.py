"""What is said of a file that is no graph."""

from __future__ import annotations


class GraphFileError(ValueError):
    """A file cannot be loaded as a graph: it is no such file, is damaged, or was made for other operators."""
