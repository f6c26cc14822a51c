"""What ``--stats`` prints: nodes by mode and reason, bytes, and where the time went."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from codegen.output import MANIFEST
from tools.regen_support.outcome import Outcome

_MOST_REASONS = 8


def statistics(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """Plain data; ``seconds`` is how long the whole run took."""
    nodes: dict[str, dict[str, str]] = json.loads(outcome.text(MANIFEST))["nodes"]
    modes = Counter(node["mode"] for node in nodes.values())
    reasons = Counter((node["mode"], general_reason(node["reason"])) for node in nodes.values())
    return {
        "torch": outcome.torch_version,
        "nodes": len(nodes),
        "modes": dict(sorted(modes.items())),
        "reasons": [
            {"mode": mode, "reason": reason, "nodes": count}
            for (mode, reason), count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        ],
        "files": len(outcome.outputs),
        "bytes": sum(outcome.sizes),
        "header_check": outcome.header_check,
        "phases": {name: round(spent, 4) for name, spent in outcome.seconds.items()},
        "cached": sorted(outcome.cached),
        "seconds": round(seconds, 4),
    }


def seconds_of_process() -> float:
    """How long this process has lived, the interpreter's own start included, to a hundredth of a second."""
    try:
        # Field 22 is when the process began, in ticks since the machine did; field 2 may hold blanks.
        began = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return time.process_time()


def general_reason(reason: str) -> str:
    """A reason without the names that make it particular.

    >>> general_reason("'cat_tensors_backward' in the formula of 'tensors' is not exported by torch")
    "'...' in the formula of '...' is not exported by torch"
    """
    return re.sub(r"'[^']*'", "'...'", reason)


def describe_statistics(found: dict[str, Any]) -> str:
    """The same for people."""
    modes = ", ".join(f"{count} {mode}" for mode, count in found["modes"].items())
    lines = [
        f"torch {found['torch']}: {found['nodes']} nodes, {modes}",
        f"outputs: {found['files']} files, {found['bytes']:,} bytes",
        f"header check: {found['header_check']}",
        "reasons:",
        *(f"  {one['nodes']:5}  {one['mode']}: {one['reason']}" for one in found["reasons"][:_MOST_REASONS]),
    ]
    if len(found["reasons"]) > _MOST_REASONS:
        lines.append(f"         and {len(found['reasons']) - _MOST_REASONS} more")
    lines.append("seconds:")
    for phase, spent in found["phases"].items():
        # A phase is named as the fact that it makes.
        note = (
            "  (kept from an earlier run)"
            if phase.replace("header check", "node-structs") in found["cached"]
            else ""
        )
        lines.append(f"  {spent:7.3f}  {phase}{note}")
    if not found["phases"]:
        lines.append("           nothing was read, because nothing changed since the last run")
    lines.append(f"  {found['seconds']:7.3f}  in all")
    return "\n".join(lines)
