"""A file from anywhere may be loaded: it is a graph, or an error in words, and nothing in it is run."""

from __future__ import annotations

import copy
import json
import os
import re
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch
from backbind.graph import saving, strict_json
from backbind.trace import TracedBackward
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save as save_tensors

from tests.graph.gradients import differences, leaf
from tests.graph.test_arguments import raised

FILES = Path(__file__).parent / "files"
Document = dict[str, Any]


def a_graph() -> TracedBackward:
    """With strides, numbers, flags, a sparse tensor and arguments of many types."""
    value, factor = leaf(2, 3), torch.complex(leaf(3, 2), leaf(3, 2)).detach().t().conj()
    loss = (
        (value * factor).abs().sum(dtype=torch.float64)
        + (value * 0.5).sum()
        + torch.nn.functional.gelu(value).sum()
    )
    loss = loss + torch.sparse.mm(torch.eye(2).to_sparse(), value).sum() + value.clamp(max=float("inf")).sum()
    return backbind.trace(loss, {"value": value})


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("valid") / "graph"
    backbind.save(a_graph(), path)
    return path.read_bytes()


def loaded(content: bytes) -> TracedBackward:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        path.write_bytes(content)
        return backbind.load(path)


def refused(content: bytes) -> str:
    """What is said of a file."""
    with pytest.raises(backbind.GraphFileError) as caught:
        loaded(content)
    found = re.fullmatch(r"'[^']+/graph' cannot be loaded as a graph: (.+)", str(caught.value))
    assert found is not None, str(caught.value)
    return found.group(1)


def opened(content: bytes) -> tuple[Document, dict[str, torch.Tensor]]:
    """The structure of a file and its pieces."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        path.write_bytes(content)
        with safe_open(path, framework="pt") as file:
            document: Document = json.loads(file.metadata()[saving.KEY])
            return document, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def closed(document: Document, pieces: dict[str, torch.Tensor]) -> bytes:
    """A file with the fingerprint of its content, as somebody who means harm would make it."""
    fingerprint = saving._fingerprint(document.get("graph"), pieces)
    text = json.dumps({**document, "fingerprint": fingerprint})
    return save_tensors(pieces, {saving.KEY: text})


# --------------------------------------------------------------------------------------------------- older versions


@pytest.mark.parametrize("path", sorted(FILES.glob("format_*.safetensors")), ids=lambda path: path.stem)
def test_old_versions_of_the_format_stay_readable(path: Path) -> None:
    """Each file lies beside the gradients that its graph gave, as hexadecimal numbers."""
    graph = backbind.load(path)
    recorded = json.loads(path.with_suffix(".json").read_text())
    found = graph(*(torch.tensor([float.fromhex(one) for one in given]) for given in recorded["given"]))
    assert {name: [value.hex() for value in one.flatten().tolist()] for name, one in found.items()} == (
        recorded["gradients"]
    )


def test_there_is_a_file_of_the_newest_format() -> None:
    assert (FILES / f"format_{saving.FORMAT}.safetensors").is_file()


def test_a_newer_format_is_refused(valid: bytes) -> None:
    document, pieces = opened(valid)
    document["format"] = saving.FORMAT + 1
    assert refused(closed(document, pieces)) == (
        f"it has format {saving.FORMAT + 1}, and this backbind reads formats up to {saving.FORMAT}: load it with a "
        "newer one"
    )


# ----------------------------------------------------------------------------------------------------- no such file


def a_folder(folder: Path) -> Path:
    return folder


def nothing(folder: Path) -> Path:
    return folder / "nothing"


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


@pytest.mark.parametrize("make", [a_folder, nothing, a_pipe], ids=lambda make: make.__name__)
def test_what_is_no_file_is_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert raised(lambda: backbind.load(path)) == (
        backbind.GraphFileError,
        f"'{path}' cannot be loaded as a graph: there is no such file",
    )


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"text", b"\xff" * 100, b"\x80\x04K\x01."])
def test_what_is_no_safetensors_file_is_refused(content: bytes) -> None:
    assert refused(content).startswith("it is no safetensors file: ")


def test_another_safetensors_file_is_refused() -> None:
    words = "it is a safetensors file, but none that backbind.save wrote"
    assert refused(save_tensors({"one": torch.ones(1)})) == words
    assert refused(save_tensors({"one": torch.ones(1)}, {"format": "pt"})) == words


def test_a_file_is_whole(valid: bytes) -> None:
    for length in range(0, len(valid), 97):
        refused(valid[:length])
    refused(valid + b"\0")


def test_a_changed_byte_is_noticed(valid: bytes) -> None:
    for position in range(0, len(valid), 61):
        changed = bytearray(valid)
        changed[position] ^= 1
        refused(bytes(changed))


def test_a_changed_value_is_noticed(valid: bytes) -> None:
    (length,) = struct.unpack("<Q", valid[:8])
    changed = bytearray(valid)
    changed[8 + length] ^= 1
    assert refused(bytes(changed)) == (
        "its content is not what its fingerprint says: it is damaged, or was changed"
    )


# ------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "its structure is no JSON: Expecting value: line 1 column 1 (char 0)"),
        ("3", "its structure is 3 instead of an object"),
        ("[" * 100_000, "its structure is nested too deeply"),
        ('{"format": 1, "format": 1}', "the key 'format' occurs twice"),
        ('{"format": NaN}', "NaN is no JSON"),
        ('{"format": 1e999}', "the number 1e999 is too large"),
        (
            '{"format": 1' + "0" * 10_000 + "}",
            "the integer 10000000000000000000000" + "0 has more than 64 bits",
        ),
        ('{"format": true}', "its format True is no version"),
        ('{"format": 0}', "its format 0 is no version"),
        ("{}", "its format None is no version"),
        ('{"format": 1}', "its structure lacks 'fingerprint'"),
        (
            '{"format": 1, "fingerprint": "", "graph": {}, "more": 1}',
            "its structure has the key 'more', which this format does not know",
        ),
        (
            '{"format": 1, "fingerprint": 1, "graph": {}}',
            "'fingerprint' of its structure is 1 instead of a string",
        ),
    ],
)
def test_json_that_is_not_ours_is_refused(text: str, said: str) -> None:
    assert refused(save_tensors({}, {saving.KEY: text})) == said


# --------------------------------------------------------------------------------------------- changed structures

Change = Callable[[Document], object]


def call_of(graph: Document, target: str) -> Document:
    found: Document = next(one for one in graph["values"] if one.get("target") == target)
    return found


def constant_of(graph: Document, layout: str = "strided") -> Document:
    found: Document = next(
        one["tensor"]
        for one in graph["constants"]
        if one["tensor"]["layout"] == layout and one["tensor"]["sizes"]
    )
    return found


def rename(graph: Document, target: str, new: str) -> None:
    for one in graph["values"]:
        if one.get("target") == target:
            one["target"] = new
    graph["operators"][new] = graph["operators"].pop(target)


CHANGES: dict[str, tuple[Change, str]] = {
    "another function": (
        lambda graph: rename(graph, "backbind::AbsBackward0", "os::system"),
        f"it calls 'os::system', which torch {torch.__version__} has no operator for; it was saved with torch "
        f"'{torch.__version__}'",
    ),
    "another operator of torch": (
        lambda graph: rename(graph, "backbind::AbsBackward0", "aten::from_file"),
        f"it calls 'aten::from_file', which torch {torch.__version__} has no operator for; it was saved with torch "
        f"'{torch.__version__}'",
    ),
    "another schema": (
        lambda graph: (
            graph.update(torch="2.9.0")
            or graph["operators"].update({"backbind::AbsBackward0": "backbind::AbsBackward0() -> Tensor[]"})
        ),
        "it calls 'backbind::AbsBackward0' as torch '2.9.0' has it, whose arguments are others in torch "
        f"{torch.__version__}",
    ),
    "an operator that is not declared": (
        lambda graph: call_of(graph, "getitem").update(target="eval"),
        "the call 'add_backward0_self' is one of 'eval', which is not among the operators of the graph",
    ),
    "an operator that is not used": (
        lambda graph: graph["operators"].update(complex="complex"),
        "'complex' is declared and not used",
    ),
    "code for a name": (
        lambda graph: graph["values"][0].update(name="x); import os; (y"),
        "'x); import os; (y' is no name for a value",
    ),
    "code for a constant": (
        lambda graph: graph["constants"][0].update(name="x;y"),
        "'x;y' is no name for a constant",
    ),
    "a name of modules": (
        lambda graph: graph["constants"][0].update(name="forward"),
        "'forward' is no name for a constant: modules use it",
    ),
    "a keyword": (lambda graph: graph["values"][0].update(name="class"), "'class' is no name for a value"),
    "self": (lambda graph: graph["values"][0].update(name="self"), "'self' is no name for a value"),
    "a builtin": (
        lambda graph: graph["values"][0].update(name="print"),
        "the name 'print' is there twice, or is one that a graph needs",
    ),
    "a name twice": (
        lambda graph: graph["values"].insert(1, graph["values"][0]),
        "the name 'gradient_0' is there twice, or is one that a graph needs",
    ),
    "a gradient in the middle": (
        lambda graph: graph["values"].append({"name": "late", "kind": "gradient"}),
        "the gradient 'late' comes after other values",
    ),
    "another kind": (
        lambda graph: graph["values"][0].update(kind="module"),
        "the value 'gradient_0' is of the unknown kind 'module'",
    ),
    "a constant twice": (
        lambda graph: graph["constants"].append(graph["constants"][0]),
        "the constant 'implicit_gradient_0' is there twice",
    ),
    "no constant": (
        lambda graph: graph["values"][1].update(target="nothing"),
        "there is no constant 'nothing'",
    ),
    "a later value": (
        lambda graph: call_of(graph, "backbind::root_gradient")["arguments"].__setitem__(
            0, {"value": "total"}
        ),
        "argument 0 of the call 'root' is value 'total', which is no Optional[Tensor]",
    ),
    "too few arguments": (
        lambda graph: call_of(graph, "backbind::AbsBackward0")["arguments"].pop(),
        "the call 'abs_backward0' has 2 arguments instead of 3",
    ),
    "an argument of another type": (
        lambda graph: call_of(graph, "backbind::AbsBackward0")["arguments"].__setitem__(1, [1]),
        "argument 1 of the call 'abs_backward0' is list, which is no List[bool]",
    ),
    "an argument of an unknown type": (
        lambda graph: call_of(graph, "backbind::AbsBackward0")["arguments"].__setitem__(1, {"pickle": ""}),
        "an argument is of the unknown type 'pickle'",
    ),
    "an unknown dtype": (
        lambda graph: call_of(graph, "backbind::AbsBackward0")["arguments"].__setitem__(1, {"dtype": "nn"}),
        "'nn' is no name of a dtype that this torch knows",
    ),
    "an unknown device": (
        lambda graph: call_of(graph, "backbind::AbsBackward0")["arguments"].__setitem__(
            1, {"device": "moon"}
        ),
        "'moon' is no device that this torch knows",
    ),
    "a gradient that no node has": (
        lambda graph: call_of(graph, "getitem")["arguments"].__setitem__(1, -1),
        "the call 'add_backward0_self' takes gradient -1, which there is none of",
    ),
    "results that are no gradients": (
        lambda graph: graph.update(results=[{"value": "abs_backward0"}]),
        "a result is Reference(name='abs_backward0'), which is no gradient",
    ),
    "fewer names than results": (lambda graph: graph.update(names=[]), "1 results have 0 names"),
    "a tensor over the end": (
        lambda graph: constant_of(graph).update(offset=1),
        "the constant 'saved_value' reaches over the end of its piece",
    ),
    "a negative stride": (
        lambda graph: constant_of(graph)["strides"].__setitem__(0, -1),
        "'strides' of the constant 'saved_value' has a negative item",
    ),
    "a size too large": (
        lambda graph: constant_of(graph)["sizes"].__setitem__(0, 2**62 + 1),
        "the constant 'saved_value' has more elements or dimensions than any tensor",
    ),
    "a dtype of another piece": (
        lambda graph: constant_of(graph).update(dtype="int32"),
        "the piece 'saved_value' holds torch.float32, which is not what torch.int32 is stored as",
    ),
    "a device that is not here": (
        lambda graph: constant_of(graph).update(device="cuda:99"),
        "the piece 'saved_value' cannot be put on cuda:99: ",
    ),
    "a flag of complex numbers": (
        lambda graph: constant_of(graph).update(conj=True),
        "the constant 'saved_value' is conjugated, but torch.float32",
    ),
    "no number": (
        lambda graph: constant_of(graph).update(number=True),
        "the constant 'saved_value' stands for a number, but is none",
    ),
    "no piece": (
        lambda graph: constant_of(graph).update(piece=None),
        "the constant 'saved_value' must have a piece if it has elements, and none otherwise",
    ),
    "another piece": (lambda graph: constant_of(graph).update(piece="x"), "there is no piece 'x'"),
    "another layout": (
        lambda graph: constant_of(graph).update(layout="jagged"),
        "the constant 'saved_value' has the layout 'jagged', in which none is stored",
    ),
    "indices over the end": (
        lambda graph: constant_of(graph, "sparse_coo").update(sizes=[1, 1]),
        "is no torch.sparse_coo tensor: ",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_structure_is_refused(name: str, valid: bytes) -> None:
    change, said = CHANGES[name]
    document, pieces = opened(valid)
    change(document["graph"])
    found = refused(closed(document, pieces))
    # What torch says at the end is torch's matter.
    assert found == said or (said.endswith(": ") and said in found)


def test_a_piece_that_nobody_uses_is_refused(valid: bytes) -> None:
    document, pieces = opened(valid)
    pieces["more"] = torch.ones(1)
    assert refused(closed(document, pieces)) == "the piece 'more' belongs to no tensor"


def test_booleans_that_are_none_are_refused(tmp_path: Path) -> None:
    value = leaf(3)
    backbind.save(backbind.trace(value.masked_fill(value > 0, 0.0).sum(), value), tmp_path / "graph")
    document, pieces = opened((tmp_path / "graph").read_bytes())
    (name,) = (name for name, piece in pieces.items() if piece.dtype is torch.bool)
    pieces[name].view(torch.uint8)[0] = 2
    assert refused(closed(document, pieces)) == f"the piece '{name}' holds what is neither true nor false"


# ------------------------------------------------------------------------------------------------------------- fuzz


def runs_or_is_refused(content: bytes) -> None:
    try:
        graph = loaded(content)
    except backbind.GraphFileError:
        return
    # What was loaded is a graph that can be stored again, and whose gradients are gradients or an error in words.
    with tempfile.TemporaryDirectory() as folder:
        backbind.save(graph, Path(folder) / "again")
        assert differences(list(graph.buffers()), list(backbind.load(Path(folder) / "again").buffers())) == {}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_files_with_changed_bytes(valid: bytes, data: st.DataObject) -> None:
    content = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    runs_or_is_refused(bytes(content))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "cpu", "meta", "float32", "complex128", "strided", "sparse_csr", "saved_value", "root", "é"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every item of a structure, with the list or object that it lies in."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in items for found in ((value, key), *places(one))]


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_files_with_changed_structures(valid: bytes, data: st.DataObject) -> None:
    document, pieces = opened(valid)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(document)
        container, key = data.draw(st.sampled_from(found))
        other, other_key = data.draw(st.sampled_from(found))
        match data.draw(st.sampled_from(["replace", "exchange", "delete", "repeat"])):
            case "replace":
                container[key] = data.draw(JSON)
            case "exchange":
                container[key] = copy.deepcopy(other[other_key])
            case "delete":
                del container[key]
            case "repeat" if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
    runs_or_is_refused(closed(document, pieces))


@given(value=JSON)
def test_a_value_has_one_text(value: Any) -> None:
    text = strict_json.dump(value)
    assert strict_json.dump(strict_json.parse(text)) == text
