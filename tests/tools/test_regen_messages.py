"""What regen prints does nothing to a terminal, whatever stood in what it read."""

from __future__ import annotations

import io

from tools.regen_support.messages import print_text


def test_control_characters_are_printed_as_escapes() -> None:
    out = io.StringIO()
    print_text("changed SinBackward0\n    - grad * \x1b[2Jx\n    + grad\u202e \u00e9 \u4e2d", file=out)
    assert out.getvalue() == "changed SinBackward0\n    - grad * \\x1b[2Jx\n    + grad\\u202e \u00e9 \u4e2d\n"
