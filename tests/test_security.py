"""What docs/security.md promises: no code from files, no connections, dependencies as listed."""

import ast
import socket
from pathlib import Path

import numpy as np
import pytest

from docs import dependencies
from scalor.cli.main import main

PACKAGE = Path(__file__).parent.parent / "scalor"
RUNS_CODE = {"eval", "exec", "compile", "__import__", "system", "popen", "Unpickler", "loads_pickle", "read_pickle"}
MODULES = {"pickle", "marshal", "shelve", "dill", "joblib", "yaml", "xml", "ctypes", "subprocess"}
ALLOWED = {
    "snapshots.py": {"pickle", "Unpickler"},  # creates named classes only
    "replacement.py": {"ctypes"},  # one system call
    "provenance.py": {"subprocess"},  # git, for the commit
    "warmup.py": {"subprocess"},  # another process of this program, to compile
    "cvat.py": {"xml"},  # written, never read
    "trackmate.py": {"xml"},
}


def hazards(source: str) -> set[str]:
    """Return the calls and modules in Python source that could run code of others."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found |= {name.name.split(".")[0] for name in names} & MODULES
            case ast.ImportFrom(module=str(module)):
                found |= {module.split(".")[0]} & MODULES
            case ast.Call(func=ast.Name(id=name)) if name in RUNS_CODE:
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="load" | "compile" as name)):
                found |= {name} & {"load"}
            case ast.Call(func=ast.Attribute(attr=name)) if name in RUNS_CODE - {"compile", "eval"}:
                found.add(name)
            case ast.keyword(arg="allow_pickle" | "shell", value=ast.Constant(value=True)):
                found.add("allow_pickle or shell")
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_in_the_package_can_run_code_of_a_file(path: Path) -> None:
    assert hazards(path.read_text()) <= ALLOWED.get(path.name, set())


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from subprocess import run", "eval(x)", "torch.load(p)", "os.system(x)", "f(allow_pickle=True)"],
)
def test_what_could_run_code_is_found(source: str) -> None:
    assert hazards(source)


def test_tracking_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    np.save(tmp_path / "v.npy", np.random.default_rng(0).integers(0, 255, (4, 32, 32, 3), np.uint8))
    for command in ("track", "predict"):
        assert main([command, str(tmp_path / "v.npy"), "--device", "cpu", "--out", str(tmp_path / command)]) in (0, 2)


def test_the_page_lists_the_dependencies_of_today() -> None:
    assert dependencies.PAGE.read_text() == dependencies.page()


@pytest.mark.parametrize("package", sorted(dependencies.dependencies()))
def test_a_package_has_the_licence_that_the_page_names(package: str) -> None:
    told = dependencies.told_licence(package)
    if not told.strip():
        pytest.skip("the package is not installed, or names no licence")
    assert dependencies.LICENCES[package] in told


@pytest.mark.parametrize("package", sorted(dependencies.FIXED))
def test_the_smallest_version_has_no_problem_that_is_known(package: str) -> None:
    least = dependencies.version(dependencies.dependencies()[package])
    assert least >= dependencies.version(dependencies.FIXED[package][0])[: len(least)]
