"""Preconditions of operators: what the arguments of a functional backward must satisfy together.

Most follow from the model by rule (`rules`). The others are data, ``torch.yaml`` for torch's own derivatives: read with
places (`table`), and held against the nodes (`resolve`, `calls`). `add_preconditions` is the entry point; what is wrong
with a table goes into the report.
"""

from .resolve import TORCH_TABLE, TORCH_TABLE_NAME, add_preconditions

__all__ = ["TORCH_TABLE", "TORCH_TABLE_NAME", "add_preconditions"]
