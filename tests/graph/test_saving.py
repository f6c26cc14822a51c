"""A graph that was saved and loaded is the graph: bits, names, errors and the bytes of its file."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import backbind
import pytest
import torch
from backbind import _C
from backbind.trace import TracedBackward
from safetensors.torch import load_file
from torch import nn

from tests.graph import foreign_programs
from tests.graph.gradients import differences, eager_gradients, leaf, same_bits
from tests.graph.test_arguments import raised
from tests.graph.test_trace import PROGRAMS
from tests.ops.node_set import NODE_SET, NodeCase
from tests.plan.random_programs import run_program
from tests.processes import run_python

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"


def saved(graph: TracedBackward, folder: Path, **options: Any) -> TracedBackward:
    """The graph that comes back from a file, which is the same file when that graph is saved."""
    first, second = folder / "first", folder / "second"
    backbind.save(graph, first, **options)
    loaded = backbind.load(first)
    backbind.save(loaded, second)
    assert first.read_bytes() == second.read_bytes()
    return loaded


def assert_same_graph(loaded: TracedBackward, graph: TracedBackward) -> None:
    """They have the same code, and buffers of the same bits, strides and flags."""
    assert loaded.code == graph.code
    buffers = dict(loaded.named_buffers())
    assert list(buffers) == [name for name, _ in graph.named_buffers()]
    assert differences(list(buffers.values()), list(graph.buffers())) == {}
    numbers = [_C.is_wrapped_number(one) for one in buffers.values()]
    assert numbers == [_C.is_wrapped_number(one) for one in graph.buffers()]
    for node, other in zip(loaded.graph.nodes, graph.graph.nodes, strict=True):
        assert node.meta == other.meta


# ----------------------------------------------------------------------------------------------------------- programs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_loaded_graph_is_the_graph(
    program: Callable[[], tuple[torch.Tensor, list[torch.Tensor]]], tmp_path: Path
) -> None:
    loss, inputs = program()
    graph = backbind.trace(loss, inputs, allow_unused=True)
    loaded = saved(graph, tmp_path)
    assert_same_graph(loaded, graph)
    assert differences(loaded(), eager_gradients(loss, inputs)) == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_loaded_random_program_equals_eager(seed: int, tmp_path: Path) -> None:
    program = run_program(seed)
    loaded = saved(backbind.trace(program.loss, list(program.leaves), allow_unused=True), tmp_path)
    assert differences(loaded(), eager_gradients(program.loss, list(program.leaves))) == {}


@pytest.mark.parametrize("case", NODE_SET, ids=str)
def test_arguments_of_every_type_are_stored(case: NodeCase, tmp_path: Path) -> None:
    made = case.make()
    graph = backbind.trace(list(made.outputs), list(made.inputs), allow_unused=True)
    loaded = saved(graph, tmp_path)
    assert_same_graph(loaded, graph)
    assert differences(loaded(*made.grads), graph(*made.grads)) == {}


def test_a_loaded_graph_runs_in_a_fresh_process(tmp_path: Path) -> None:
    loss, inputs = PROGRAMS[-1]()
    graph = backbind.trace(loss, inputs)
    stored, results = tmp_path / "graph.safetensors", tmp_path / "gradients.pt"
    backbind.save(graph, stored)
    program = (
        "import backbind, torch\n"
        # As many threads as here: they decide how sums are split, and so how they round.
        f"torch.set_num_threads({torch.get_num_threads()})\n"
        f"torch.save(backbind.load({str(stored)!r})(), {str(results)!r})\n"
    )
    run_python("-c", program, env={"PYTHONPATH": str(RUNTIME)})
    assert differences(torch.load(results), graph()) == {}


# ------------------------------------------------------------------------------------------------------------ tensors


def contiguous(value: torch.Tensor) -> torch.Tensor:
    return value


def transposed(value: torch.Tensor) -> torch.Tensor:
    return value.t()


def with_gaps(value: torch.Tensor) -> torch.Tensor:
    return value[1:, 1::2]


def expanded(value: torch.Tensor) -> torch.Tensor:
    return value[:, 1:2].expand(4, 4)


def overlapping(value: torch.Tensor) -> torch.Tensor:
    return value.flatten().unfold(0, 4, 2)[:4]


def conjugated(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value, value).conj()


def negated(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value, value).conj().imag


def conjugated_and_negated(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value, value)._neg_view().conj()


def double_complex(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value.double(), value.double())


def half_complex(value: torch.Tensor) -> torch.Tensor:
    return torch.complex(value.half(), value.half())


def bytes_of_floats(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.float8_e4m3fn)


def booleans(value: torch.Tensor) -> torch.Tensor:
    return value > 0


def not_numbers(value: torch.Tensor) -> torch.Tensor:
    return torch.tensor([0x7FC00001, -1, 0x7F800000, -0x80000000], dtype=torch.int32).view(torch.float32)


def scalar(value: torch.Tensor) -> torch.Tensor:
    return value[0, 0]


def empty(value: torch.Tensor) -> torch.Tensor:
    return value[:0]


def empty_with_strides(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided((0, 4, 3), (7, 1, 5))


def without_memory(value: torch.Tensor) -> torch.Tensor:
    return value.to("meta").t()


def sparse(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse()


def sparse_twice(value: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[1, 1], [0, 0]]), torch.tensor([1.0, 2.0]), (4, 4))


def sparse_with_one_value(value: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[1], [0]]), torch.tensor([1.0]), (4, 4))


def hybrid(value: torch.Tensor) -> torch.Tensor:
    return torch.stack([value, value]).to_sparse(1)


def compressed_rows(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse_csr()


def compressed_columns(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse_csc()


def blocks_of_rows(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse_bsr((2, 2))


def blocks_of_columns(value: torch.Tensor) -> torch.Tensor:
    return value.to_sparse_bsc((2, 2))


KINDS = (
    *(contiguous, transposed, with_gaps, expanded, overlapping, conjugated, negated, conjugated_and_negated),
    *(
        double_complex,
        half_complex,
        bytes_of_floats,
        booleans,
        not_numbers,
        scalar,
        empty,
        empty_with_strides,
    ),
    *(without_memory, sparse, sparse_twice, sparse_with_one_value, hybrid),
    *(compressed_rows, compressed_columns, blocks_of_rows, blocks_of_columns),
)


def with_buffers(**buffers: torch.Tensor) -> TracedBackward:
    """A graph with these tensors in the place of what the forward saved."""
    values = [leaf(1) for _ in buffers]
    loss = sum((torch.sin(value) for value in values), start=torch.zeros(1)).sum()
    graph = backbind.trace(loss, values, copy_saved=True)
    saved_names = [name for name, _ in graph.named_buffers()][1:]
    for name, tensor in zip(saved_names, buffers.values(), strict=True):
        graph._buffers[name] = tensor
    return graph


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta", "ignore:ComplexHalf support")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_tensors_of_each_kind_come_back(kind: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path) -> None:
    base = leaf(4, 4).detach()
    given = kind(base)
    found = list(saved(with_buffers(one=given), tmp_path).buffers())[1]
    if given.is_meta:
        assert (found.shape, found.stride(), found.dtype, found.device) == (
            *(given.shape, given.stride(), given.dtype, given.device),
        )
        return
    if kind is not half_complex and kind is not bytes_of_floats:
        assert same_bits(found, given)
        return
    # Formats that the comparison has no arithmetic for.
    assert (found.dtype, found.shape, found.stride()) == (given.dtype, given.shape, given.stride())
    assert torch.equal(found.view(torch.uint8), given.view(torch.uint8))


def test_bits_of_values_that_are_no_numbers_come_back(tmp_path: Path) -> None:
    given = not_numbers(leaf(1))
    found = list(saved(with_buffers(one=given), tmp_path).buffers())[1]
    assert torch.equal(found.view(torch.int32), given.view(torch.int32))


def test_memory_that_tensors_share_is_stored_once_and_shared_again(tmp_path: Path) -> None:
    base = leaf(100, 100).detach()
    graph = with_buffers(one=base, other=base.t(), diagonal=base.diagonal())
    loaded = saved(graph, tmp_path)
    assert (tmp_path / "first").stat().st_size < 50_000
    _, one, other, diagonal = loaded.buffers()
    one.zero_()
    assert other.abs().max() == 0
    assert diagonal.abs().max() == 0
    assert base.abs().max() > 0


def test_only_what_tensors_hold_is_stored(tmp_path: Path) -> None:
    base = torch.full((1000, 3), 7.0)
    graph = with_buffers(one=base[1], other=base[900], gaps=base[500:502, ::2])
    saved(graph, tmp_path)
    pieces = load_file(tmp_path / "first")
    counts = sorted((piece.numel(), int((piece == 7).sum())) for piece in pieces.values())
    # The gap of a column is zero.
    assert counts == [(1, 0), (3, 3), (3, 3), (6, 4)]


def test_a_tensor_that_lies_plainly_is_found_by_other_tools(tmp_path: Path) -> None:
    weight = leaf(3, 4)
    graph = backbind.trace((weight * weight).sum(), copy_saved=True)
    backbind.save(graph, tmp_path / "graph")
    loaded = load_file(tmp_path / "graph")
    assert [torch.equal(loaded[name], one) for name, one in graph.named_buffers()] == [True, True]


@pytest.mark.parametrize(
    "number", [0.3, 7, True, 1e300, float("inf"), float("nan"), 0.3 - 0.7j, complex("inf")]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
def test_a_number_stays_one(number: complex, dtype: torch.dtype, tmp_path: Path) -> None:
    value = torch.tensor(0.7, dtype=dtype, requires_grad=True)
    output = value * 0.1 * number + value / 0.9
    given = torch.tensor(0.3, dtype=output.dtype)
    graph = backbind.trace(output, [value])
    loaded = saved(graph, tmp_path)
    assert_same_graph(loaded, graph)
    expected = torch.autograd.grad(output, [value], given, retain_graph=True)
    assert differences(loaded(given), expected) == {}


@pytest.mark.parametrize("alpha", [complex("inf"), complex(0.5, float("nan")), 2j, float("inf"), -0.0, -0j])
def test_numbers_are_constants_of_the_structure(alpha: complex, tmp_path: Path) -> None:
    value, other = leaf(3, dtype=torch.complex64), leaf(3, dtype=torch.complex64)
    output = torch.add(value, other, alpha=alpha)
    given = leaf(3, dtype=torch.complex64).detach()
    expected = torch.autograd.grad(output, [value, other], given, retain_graph=True)
    assert differences(saved(backbind.trace(output, [value, other]), tmp_path)(given), expected) == {}


def quantized() -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])


def mkldnn() -> torch.Tensor:
    return torch.ones(2).to_mkldnn()


def zeros_without_memory() -> torch.Tensor:
    return torch._efficientzerotensor((2,))


def a_subclass() -> torch.Tensor:
    return nn.Parameter(torch.ones(2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "described"),
    [
        (quantized, "a quantized tensor"),
        (nested, "a nested tensor"),
        (mkldnn, "a tensor of the layout torch._mkldnn"),
        (zeros_without_memory, "zeros without memory"),
        (a_subclass, "Parameter"),
    ],
)
def test_other_kinds_are_refused(make: Callable[[], torch.Tensor], described: str, tmp_path: Path) -> None:
    graph = with_buffers(one=make(), other=make())
    _, one, other = dict(graph.named_buffers())
    assert raised(lambda: backbind.save(graph, tmp_path / "graph")) == (
        TypeError,
        f"this graph has buffers of kinds that cannot be stored:\n  {one}: {described}\n  {other}: {described}",
    )
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------------------------- what a graph can do


def a_network() -> tuple[nn.Module, TracedBackward, Mapping[str, torch.Tensor]]:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    graph = backbind.trace(made(torch.randn(3, 4)).sum(), dict(made.named_parameters()))
    return made, graph, graph()


def test_a_dict_of_gradients_comes_back(tmp_path: Path) -> None:
    _, graph, expected = a_network()
    found = saved(graph, tmp_path)()
    assert list(found) == list(expected)
    assert differences(list(found.values()), list(expected.values())) == {}


def deep_copied(graph: TracedBackward) -> TracedBackward:
    return copy.deepcopy(graph)


def pickled(graph: TracedBackward) -> TracedBackward:
    loaded: TracedBackward = pickle.loads(pickle.dumps(graph))
    return loaded


def moved(graph: TracedBackward) -> TracedBackward:
    graph.double()
    graph.float()
    return graph


@pytest.mark.parametrize("use", [deep_copied, pickled, moved, copy.copy], ids=lambda use: use.__name__)
def test_a_loaded_graph_is_copied_and_moved_like_any(
    use: Callable[[TracedBackward], TracedBackward], tmp_path: Path
) -> None:
    _, graph, expected = a_network()
    for found in (use(saved(graph, tmp_path))(), saved(use(graph), tmp_path)()):
        assert differences(list(found.values()), list(expected.values())) == {}


def test_a_loaded_graph_owns_its_constants(tmp_path: Path) -> None:
    made, graph, expected = a_network()
    loaded = saved(graph, tmp_path)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)
    (tmp_path / "first").write_bytes(b"\0" * 10_000)
    assert differences(list(loaded().values()), list(expected.values())) == {}


@pytest.mark.parametrize("given", [None, torch.ones(2), torch.ones(3, dtype=torch.complex64), 3])
def test_wrong_gradients_are_refused_in_the_same_words(given: Any, tmp_path: Path) -> None:
    value = leaf(3)
    graph = backbind.trace(value * value, value)
    assert raised(lambda: saved(graph, tmp_path)(given)) == raised(lambda: graph(given))


@pytest.mark.parametrize("allow_unused", [False, True])
def test_whether_inputs_may_be_unused_comes_back(allow_unused: bool, tmp_path: Path) -> None:
    value, weight = leaf(1, 1, 4, 4), leaf(1, 1, 2, 2)
    (gradient,) = torch.autograd.grad(nn.functional.conv2d(value, weight).sum(), value, create_graph=True)
    graph = backbind.trace(gradient.square().sum(), [value], allow_unused=allow_unused)
    loaded = saved(graph, tmp_path)
    if allow_unused:
        assert loaded() == (None,)
    else:
        assert raised(loaded) == raised(graph)


def test_a_saved_tensor_that_was_changed_is_not_saved(tmp_path: Path) -> None:
    made, graph, _ = a_network()
    with torch.no_grad():
        made.get_parameter("2.weight").mul_(2)
    assert raised(lambda: backbind.save(graph, tmp_path / "graph")) == raised(graph)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    _, graph, _ = a_network()
    path = tmp_path / "graph"
    path.write_text("before")
    foreign = backbind.trace(foreign_programs.a_function([])[0])
    with pytest.raises(TypeError):
        backbind.save(foreign, path)
    assert path.read_text() == "before"
    backbind.save(graph, str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["graph"]
    assert differences(list(backbind.load(str(path))().values()), list(graph().values())) == {}


def test_what_is_no_traced_backward_is_refused(tmp_path: Path) -> None:
    network: Any = nn.Linear(1, 1)
    assert raised(lambda: backbind.save(network, tmp_path / "graph")) == (
        TypeError,
        "graph must be what backbind.trace gives, got Linear",
    )
    choice: Any = "keep"
    assert raised(lambda: backbind.save(a_network()[1], tmp_path / "graph", hooks=choice)) == (
        ValueError,
        "hooks must be 'refuse' or 'drop', got 'keep'",
    )


def test_other_calls_and_keys_are_listed(tmp_path: Path) -> None:
    value = leaf(3)
    keys: Any = {1: value}
    graph = backbind.trace(value.sin().sum(), keys)
    for node in graph.graph.nodes:
        if node.target is torch.ops.backbind.SinBackward0.default:
            node.target = torch.ops.aten.mul.Tensor
    assert raised(lambda: backbind.save(graph, tmp_path / "graph")) == (
        TypeError,
        "this graph holds what means nothing outside of this process:\n"
        "  SinBackward0: a call of 'aten.mul.Tensor', which no trace makes\n"
        "  1: a key of its results that is no string",
    )


# -------------------------------------------------------------------------------------------------------------- hooks

HEAD = "this graph holds what means nothing outside of this process:"
DROP = "hooks='drop' leaves the hooks out"
UNPACK = "backbind.trace(..., unpack_hooks=True) calls those of saved tensors once, and keeps results"


@pytest.mark.parametrize(
    ("program", "listed"),
    [
        (
            foreign_programs.every_kind_of_hook_on_one_node,
            [
                "  ExpBackward0: tensor hook",
                "  ExpBackward0: retained gradient",
                "  ExpBackward0: node pre-hook",
                "  ExpBackward0: node post-hook",
                DROP,
            ],
        ),
        (
            foreign_programs.hooks_where_no_gradient_comes_in,
            [
                "  ExpBackward0: node post-hook",
                "  NoGradientBackward: function of Python",
                f"{DROP}; the rest cannot be left out",
            ],
        ),
        (
            foreign_programs.one_element_is_set,
            ["  torch::autograd::CopySlices: change of a view in place"],
        ),
        (
            foreign_programs.a_tensor_is_copied_to_another_dtype,
            ["  torch::autograd::CopyBackwards: function of C++"],
        ),
        (
            foreign_programs.some_saved_tensors_with_hooks,
            [
                "  MulBackward0: tensor hook",
                "  MulBackward0: unpack hooks of saved tensors",
                f"{DROP}; the rest cannot be left out",
                UNPACK,
            ],
        ),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_cannot_be_saved_is_listed(
    program: foreign_programs.Program, listed: list[str], tmp_path: Path
) -> None:
    loss, inputs = program([])
    graph = backbind.trace(loss, inputs)
    refused = (TypeError, "\n".join([HEAD, *listed]))
    assert raised(lambda: backbind.save(graph, tmp_path / "graph")) == refused
    assert raised(graph.to_source) == refused
    if DROP not in listed:
        remaining = [one for one in listed if not one.startswith(DROP) and "hook\n" not in f"{one}\n"]
        dropped = (TypeError, "\n".join([HEAD, *remaining]))
        assert raised(lambda: backbind.save(graph, tmp_path / "graph", hooks="drop")) == dropped
    assert list(tmp_path.iterdir()) == []


def test_symbols_are_listed(tmp_path: Path) -> None:
    loss, inputs = foreign_programs.jagged_tensors([])
    graph = backbind.trace(loss, inputs)
    kind, text = raised(lambda: backbind.save(graph, tmp_path / "graph"))
    head, line = text.split("\n")
    assert (kind, head, line.split(":")[1:]) == (TypeError, HEAD, [" a symbol, the size of jagged tensors"])


def test_without_its_hooks_a_graph_gives_what_they_are_given(tmp_path: Path) -> None:
    log: list[str] = []
    loss, inputs = foreign_programs.every_kind_of_hook_on_one_node(log)
    found = saved(backbind.trace(loss, inputs), tmp_path, hooks="drop")()
    value = leaf(3)
    assert differences(found, torch.autograd.grad((value.exp() * 2).sum(), [value])) == {}
    assert log == []
