"""What generated code is called comes from the library: another one's names stand wherever torch's do."""

from __future__ import annotations

from dataclasses import replace

from codegen.emit.file_header import copy_fingerprint
from codegen.model.node import Model
from codegen.pipeline import Settings, Timings, render

RENAMED = [
    ("derivatives.yaml", "mine.yaml"),
    ("of torch 2.13.0", "of mylib 0.7"),
    ("namespace backbind::generated", "namespace mine::generated"),
    (f"using namespace {'at;':<42}//", f"using namespace {'myops;':<42}//"),
    ("namespace structs = torch::autograd::generated;", "namespace structs = mine::nodes;"),
    ("stood among torch's own", "stood among mylib's own"),
    ("Where torch keeps a helper", "Where mylib keeps a helper"),
    ("``backbind.ops.MulBackward0(", "``mylib.ops.MulBackward0("),
    ("from backbind.ops._areas", "from mylib.ops._areas"),
    ("# Operators of backbind", "# Operators of mine"),
    ('"torch": "2.13.0"', '"mylib": "0.7"'),
]


def test_emitters_take_every_name_from_the_library(model: Model, texts: dict[str, str]) -> None:
    library = replace(
        model.library,
        name="mylib",
        version="0.7",
        yaml_name="mine.yaml",
        namespace="mine",
        python_module="mylib.ops",
        structs="mine::nodes",
        formula_namespaces=("myops", *model.library.formula_namespaces[1:]),
    )
    made = render(replace(model, library=library), Settings(), Timings())
    assert made.keys() == texts.keys()
    met = set()
    for path, text in texts.items():
        expected = text
        for old, new in RENAMED:
            if old in expected:
                met.add(old)
                expected = expected.replace(old, new)
        # Of a file's fingerprint nothing is said here, and a page has none.
        assert copy_fingerprint(expected, made[path]).split("\n") == expected.split("\n"), path
    assert met == {old for old, _ in RENAMED}
