"""Hypothesis strategies for programs."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.replay.programs.changes import CHANGES
from tests.replay.programs.hooks import DOES, FAILS, KINDS
from tests.replay.programs.machine import LEAVES
from tests.replay.programs.operations import OPERATIONS, RARE
from tests.replay.programs.program import (
    Ask,
    Branch,
    Change,
    Checkpoint,
    Do,
    Hook,
    Program,
    Saving,
    Statement,
    Step,
    Unhook,
)

SAVINGS = ("wrapped", "as it is", "cloned", "through numpy", "halved", "on the CPU")

# Recent values more often, so that long chains come about.
_places = st.sampled_from((-1, -1, -2, -3, -4, 0, 1, 2, 3, 4, 5))

operations = st.sampled_from((*(list(OPERATIONS) * 2), *RARE))
does = st.sampled_from((*(list(DOES) * 3), *FAILS))

dos = st.builds(Do, operations, st.tuples(_places, _places))
hooks = st.builds(Hook, st.sampled_from(KINDS), _places, does)
unhooks = st.builds(Unhook, _places)
checkpoints = st.builds(
    Checkpoint,
    # Reentrant ones allow no inputs=.
    st.sampled_from((False, False, False, True)),
    st.lists(dos, min_size=1, max_size=3).map(tuple),
    st.tuples(_places, _places),
)
_plain: SearchStrategy[Statement] = st.one_of(dos, dos, dos, dos, hooks, hooks, hooks, checkpoints, unhooks)


def _nested(inner: SearchStrategy[Statement]) -> SearchStrategy[Statement]:
    body = st.lists(inner, min_size=1, max_size=5).map(tuple)
    return st.one_of(
        st.builds(Saving, st.sampled_from((*SAVINGS, *SAVINGS, "failing")), body), st.builds(Branch, body)
    )


statements = st.one_of(_plain, _plain, _plain, _plain, _nested(st.one_of(_plain, _nested(_plain))))

changes = st.builds(Change, st.sampled_from(tuple(CHANGES)), _places)

_roots = st.lists(st.integers(-4, -1), min_size=1, max_size=3).map(tuple)
_with_one_twice = _roots.map(lambda roots: (*roots, roots[0]))

asks = st.builds(
    Ask,
    roots=st.one_of(_roots, _roots, _roots, _with_one_twice),
    summed=st.booleans(),
    inputs=st.one_of(st.none(), st.none(), st.lists(_places, min_size=1, max_size=3).map(tuple)),
    grad=st.sampled_from((False, False, True)),
    retain_graph=st.booleans(),
    create_graph=st.sampled_from((False, False, False, True)),
    again=st.sampled_from((False, False, True)),
)

steps = st.builds(
    Step,
    ask=asks,
    rows=st.sampled_from((2, 1, 3, 0)),
    takes_branches=st.booleans(),
    clears=st.one_of(st.just(()), st.none(), st.lists(st.integers(0, 3), max_size=2).map(tuple)),
    before=st.lists(st.one_of(hooks, hooks, unhooks), max_size=2).map(tuple),
    special=st.sampled_from((False, False, False, True)),
    changes=st.one_of(
        st.just(()), st.just(()), st.just(()), st.lists(changes, min_size=1, max_size=2).map(tuple)
    ),
)

programs = st.builds(
    Program,
    st.one_of(
        st.lists(statements, min_size=1, max_size=4).map(tuple),
        st.lists(statements, min_size=7, max_size=16).map(tuple),
    ),
    st.lists(steps, min_size=1, max_size=4).map(tuple),
    st.one_of(
        st.just(()),
        st.just(()),
        st.lists(st.sampled_from((*LEAVES, "data")), max_size=2, unique=True).map(tuple),
    ),
)
