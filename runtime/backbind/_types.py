"""Types that signatures of operators use."""

from __future__ import annotations

from typing import TypeAlias

import torch

IntLike: TypeAlias = int | torch.SymInt
"""An integer, or a symbolic one while a graph is traced with dynamic shapes."""

Number: TypeAlias = int | float | complex | bool
"""What an ATen ``Scalar`` may be."""
