"""Kept facts: found under the same key only, and never worse than making them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.torch_install.cache import Cache, content_key, keep_file, own_sources


def never() -> str:
    raise AssertionError("a kept fact was made again")


def test_a_fact_is_made_once(tmp_path: Path) -> None:
    first = Cache(tmp_path / "new" / "folder")
    assert first.fetch("fact", "k1", lambda: "made") == "made"
    assert first.hits == set()
    second = Cache(tmp_path / "new" / "folder")
    assert second.fetch("fact", "k1", never) == "made"
    assert second.hits == {"fact"}


def test_another_key_or_name_is_another_fact(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.keep("fact", "k1", "one")
    assert cache.find("fact", "k2") is None
    assert cache.find("other", "k1") is None
    assert cache.hits == set()


@pytest.mark.parametrize("content", [b"", b"\x80", b"not a pickle", b"cno_such_module\nthing\n."])
def test_what_cannot_be_read_is_made_again(tmp_path: Path, content: bytes) -> None:
    cache = Cache(tmp_path)
    path = cache.path("fact", "k1")
    assert path is not None
    path.write_bytes(content)
    assert cache.fetch("fact", "k1", lambda: "made") == "made"
    assert Cache(tmp_path).fetch("fact", "k1", never) == "made"


def test_without_a_folder_nothing_is_kept() -> None:
    cache = Cache()
    assert cache.fetch("fact", "k1", lambda: "one") == "one"
    assert cache.fetch("fact", "k1", lambda: "two") == "two"
    assert cache.path("fact", "k1") is None


def test_a_folder_that_cannot_be_made_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "folder")
    assert cache.fetch("fact", "k1", lambda: "made") == "made"


def test_the_oldest_of_a_name_are_forgotten(tmp_path: Path) -> None:
    for number in range(6):
        keep_file(tmp_path / f"fact-{number}.pickle", b"x")
        os.utime(tmp_path / f"fact-{number}.pickle", (number, number))
    keep_file(tmp_path / "other-0.pickle", b"x")
    keep_file(tmp_path / "fact-6.pickle", b"x")
    names = ["fact-3.pickle", "fact-4.pickle", "fact-5.pickle", "fact-6.pickle", "other-0.pickle"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


@given(st.lists(st.text(max_size=4), max_size=4), st.lists(st.text(max_size=4), max_size=4))
def test_keys_tell_every_list_of_texts_from_every_other(left: list[str], right: list[str]) -> None:
    try:
        assert (content_key(*left) == content_key(*right)) == (left == right)
    except UnicodeEncodeError:
        return


def test_a_key_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    first, second, missing = tmp_path / "a", tmp_path / "b", tmp_path / "none"
    first.write_text("same")
    second.write_text("same")
    assert content_key(first) == content_key(second)
    second.write_text("other")
    empty = tmp_path / "empty"
    empty.touch()
    assert len({content_key(one) for one in (first, second, missing, empty)}) == 4


def test_own_sources_are_files_and_whole_folders() -> None:
    names = [path.name for path in own_sources("names.py", "model")]
    assert names[0] == "names.py"
    assert {"build.py", "node.py", "saved_types.py"} < set(names)
