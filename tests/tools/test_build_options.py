"""The command line and the environment variables of the build."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.build_tree import make_build_tree
from tools.build import main
from tools.build_support.errors import BuildError
from tools.build_support.options import BuildOptions, Environment, job_count, parse_arguments
from tools.build_support.sanitizers import SANITIZERS

PATHS = st.none() | st.sampled_from([Path("/tmp/one"), Path("/tmp/t w o")])


@given(
    options=st.builds(
        BuildOptions,
        root=st.just(Path("/srv/checkout")),
        build_dir=PATHS,
        generated=PATHS,
        jobs=st.none(),
        sanitize=st.none() | st.sampled_from(list(SANITIZERS)),
        precompiled_header=st.booleans(),
        place=st.booleans(),
        keep_going=st.just(False),
        verbose=st.just(False),
    )
)
def test_arguments_that_the_build_file_repeats_ask_for_the_same_build(options: BuildOptions) -> None:
    assert parse_arguments(options.arguments()).options == options


@pytest.mark.parametrize(
    ("variables", "field", "value"),
    [
        ({}, "cxx", ("g++",)),
        ({"CXX": ""}, "cxx", ("g++",)),
        ({"CXX": "ccache g++-12"}, "cxx", ("ccache", "g++-12")),
        ({"CXX": "'/opt/my compilers/g++'"}, "cxx", ("/opt/my compilers/g++",)),
        ({}, "cxxflags", ()),
        ({"CXXFLAGS": "-O3 -march=native"}, "cxxflags", ("-O3", "-march=native")),
        ({"LDFLAGS": "-fuse-ld=mold"}, "ldflags", ("-fuse-ld=mold",)),
        ({}, "max_jobs", None),
        ({"MAX_JOBS": ""}, "max_jobs", None),
        ({"MAX_JOBS": "7"}, "max_jobs", 7),
        ({}, "cuda_home", None),
        ({"CUDA_PATH": "/b"}, "cuda_home", Path("/b")),
        ({"CUDA_HOME": "/a", "CUDA_PATH": "/b"}, "cuda_home", Path("/a")),
        ({"TORCH_CUDA_ARCH_LIST": ""}, "cuda_arch_list", None),
        ({"TORCH_CUDA_ARCH_LIST": "9.0"}, "cuda_arch_list", "9.0"),
    ],
)
def test_environment(variables: dict[str, str], field: str, value: object) -> None:
    assert getattr(Environment.read(variables), field) == value


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", " "])
def test_senseless_job_counts_are_refused(text: str) -> None:
    expected = f"is {text!r}; expected a whole number of parallel jobs, at least 1."
    with pytest.raises(BuildError) as raised:
        Environment.read({"MAX_JOBS": text})
    assert str(raised.value) == f"the environment variable MAX_JOBS {expected}"
    with pytest.raises(BuildError) as raised:
        parse_arguments([f"--jobs={text}"])
    assert str(raised.value) == f"--jobs {expected}"


@pytest.mark.parametrize(("option", "variable", "jobs"), [(3, "5", 3), (None, "5", 5), (3, "", 3)])
def test_option_wins_over_variable(option: int | None, variable: str, jobs: int) -> None:
    assert job_count(BuildOptions(jobs=option), Environment.read({"MAX_JOBS": variable})) == jobs


@pytest.mark.parametrize(
    ("cores", "gibibytes", "jobs"),
    [(8, 64, 8), (8, 8, 4), (2, 24, 2), (4, 1, 1)],
    ids=lambda value: str(value),
)
def test_jobs_fit_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int, gibibytes: int, jobs: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": gibibytes << 18}
    monkeypatch.setattr("os.sysconf", sizes.__getitem__)
    assert job_count(BuildOptions(), Environment.read({})) == jobs


def test_missing_compiler_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = make_build_tree(tmp_path / "checkout", monkeypatch)
    monkeypatch.setenv("CXX", "no-such-compiler -x")
    assert main(["--root", str(tree.root), "--configure-only"]) == 1
    message = capsys.readouterr().err
    assert message == (
        "tools/build.py: the C++ compiler 'no-such-compiler -x' does not run ([Errno 2] No such file or "
        "directory: 'no-such-compiler'). Install one (Debian, Ubuntu: apt-get install g++) or name it in the "
        "environment variable CXX.\n"
    )
