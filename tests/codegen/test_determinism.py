"""The same input gives the same bytes: under any hash seed, locale, time zone and place, and nothing of those
shows.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.output import list_files
from codegen.torch_install.locate import TorchInstall

REGEN = Path(__file__).parents[2] / "tools" / "regen.py"

SURROUNDINGS = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "HOME": "/nowhere/first"},
    {
        "PYTHONHASHSEED": "4242",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "America/New_York",
        "USER": "somebody",
        "COLUMNS": "40",
    },
)


def generate(out: Path, surroundings: dict[str, str]) -> dict[str, bytes]:
    """What a fresh process without any kept facts writes, started in a folder of its own."""
    out.parent.mkdir()
    command = [sys.executable, str(REGEN), "--out", str(out), "--no-cache", "--no-header-check"]
    subprocess.run(
        command, env={**os.environ, **surroundings}, cwd=out.parent, check=True, capture_output=True
    )
    return {path: (out / path).read_bytes() for path in list_files(out)}


@pytest.mark.slow
def test_surroundings_do_not_show(tmp_path: Path, texts: dict[str, str]) -> None:
    first, second = (
        generate(tmp_path / f"place-{number}" / "out", surroundings)
        for number, surroundings in enumerate(SURROUNDINGS)
    )
    assert list(first) == list(second) == sorted(texts)
    assert [path for path in first if first[path] != second[path]] == []
    # What is made from kept facts is the same as what is made from nothing.
    assert [path for path in first if first[path].decode() != texts[path]] == []


def test_no_place_person_or_date_is_in_the_output(
    texts: dict[str, str], installed_torch: TorchInstall
) -> None:
    repository = str(REGEN.parents[1])
    places = [
        repository,
        str(installed_torch.root.parent),
        sys.prefix,
        str(Path.home()),
        socket.gethostname(),
    ]
    for path, text in texts.items():
        assert [place for place in places if len(place) > 1 and place in text] == [], path
        # The user's name may be a word of the field, such as 'root', so it counts only in its place.
        person = rf"(by|user|author)[ :]+{re.escape(getpass.getuser())}\b"
        assert not re.search(person, text, re.IGNORECASE), path
        assert re.findall(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text) == [], path
        assert re.findall(r"(?<![\w<./*])/(?:home|usr|opt|tmp|work|root|var|lib)/\w+", text) == [], path


def test_files_and_nodes_are_in_order(texts: dict[str, str]) -> None:
    assert list(texts) == sorted(texts)
    for path, text in texts.items():
        assert text.endswith("\n") and not text.endswith("\n\n"), path
        assert "\r" not in text and "\t" not in text, path
        blocks = re.findall(r"^// ==== (\w+) =", text, re.MULTILINE)
        assert blocks == sorted(blocks), path
