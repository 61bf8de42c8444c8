"""`python -m benchmarks.structure`: the import graph of working trees, the sizes of their files, and three journeys.

    git worktree add ../before COMMIT
    python -m benchmarks.structure ../before . --out structure.json

The graph has an edge for every import that runs, also inside functions; imports for type checkers only are left out.
A journey is one command: the files, and the packages, whose functions it calls.
"""

import argparse
import ast
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from benchmarks import report
from benchmarks.track_command import origin
from benchmarks.unchanged import draw_scene

SHORT = 20
"""Files of so many lines or fewer are not counted: most are the first lines of a package."""
LONG = 400
JOURNEYS = {
    "train": ("train", "shapes-tiny", "--train.steps=2", "--clips", "2", "--device", "cpu", "--out", "OUT"),
    "track": ("track", "SCENE", "--weights", "pets", "--device", "cpu", "--out", "OUT"),
    "fit": ("fit", "SCENE", "--steps", "2", "--device", "cpu", "--out", "OUT"),
}
TRACER = """
import inspect, sys, threading
from pathlib import Path
home, out = sys.argv.pop(1), sys.argv.pop(1)
seen = {}
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code not in seen:
        function = bool(code.co_flags & inspect.CO_OPTIMIZED)  # not the body of a class or module
        seen[code] = function and code.co_filename.startswith(home)
threading.setprofile(note)
sys.setprofile(note)
from scalor.cli.main import main
try:
    status = main()
except SystemExit as stop:
    status = stop.code
sys.setprofile(None)
files = sorted({code.co_filename[len(home):].lstrip("/") for code, ours in seen.items() if ours})
Path(out).write_text("\\n".join(files))
sys.exit(status)
"""


@dataclass(frozen=True)
class Size:
    """The sizes of a working tree, and its import cycles."""

    commit: str
    files: int
    """Files of more than SHORT lines."""
    median_lines: float
    longest: int
    over_400: int
    cyclic_modules: int
    """Modules that are part of an import cycle."""
    cyclic_packages: int


@dataclass(frozen=True)
class Row(Size):
    """The figures of one working tree."""

    journeys: dict[str, list[str]]
    """The files that each command passes; empty if they were not asked for, or if it failed."""


def modules(tree: Path) -> dict[str, Path]:
    """Return the files of the package by module name."""
    found = {}
    for path in sorted((tree / "scalor").rglob("*.py")):
        parts = path.relative_to(tree).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of the package that a file imports when it runs."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else node.module


def package_of(module: str) -> str:
    """Return the folder below `scalor`, or the module itself if it lies in `scalor`.

    >>> package_of("scalor.model.elbo"), package_of("scalor.config")
    ('scalor.model', 'scalor.config')
    """
    return ".".join(module.split(".")[:2])


def cyclic(edges: set[tuple[str, str]]) -> set[str]:
    """Return the nodes of a graph that lie on a cycle of two nodes or more.

    >>> sorted(cyclic({("a", "b"), ("b", "a"), ("b", "c")}))
    ['a', 'b']
    """
    names = sorted({name for edge in edges for name in edge})
    number = {name: index for index, name in enumerate(names)}
    rows, columns = [number[a] for a, _ in edges], [number[b] for _, b in edges]
    graph = csr_array(([1] * len(edges), (rows, columns)), shape=(len(names), len(names)))
    _, labels = connected_components(graph, directed=True, connection="strong")
    members = labels.tolist()
    return {name for name, label in zip(names, members, strict=True) if members.count(label) > 1}


def journey(tree: Path, words: tuple[str, ...]) -> list[str]:
    """Run a command in a working tree. Return the files whose functions it called, none if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        scene, files = Path(folder) / "scene.npy", Path(folder) / "files.txt"
        draw_scene(scene, frames=40)
        given = {"SCENE": str(scene), "OUT": str(Path(folder) / "out")}
        home = str((tree / "scalor").resolve())
        command = [sys.executable, "-c", TRACER, home, str(files), *(given.get(word, word) for word in words)]
        environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr[-500:], file=sys.stderr)
            return []
        return files.read_text().splitlines()


@dataclass(frozen=True)
class JourneyRow:
    """The files and packages that a command passes."""

    commit: str
    command: str
    files: int
    packages: int


def journey_rows(rows: list[Row]) -> list[JourneyRow]:
    """Return the journeys of all working trees as rows of a table."""
    return [
        JourneyRow(row.commit, name, len(files), len({package_of(module_of(file)) for file in files}))
        for row in rows
        for name, files in row.journeys.items()
    ]


def module_of(file: str) -> str:
    """Return the module of a file named from the package's folder.

    >>> module_of("model/elbo.py"), module_of("still/__init__.py")
    ('scalor.model.elbo', 'scalor.still')
    """
    return "scalor." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def measure(tree: Path, journeys: bool) -> Row:
    """Return the figures of a working tree."""
    known = modules(tree)
    lines = sorted(len(path.read_text().splitlines()) for path in known.values())
    counted = [count for count in lines if count > SHORT]
    edges = {(name, other) for name, path in known.items() for other in imports(path, known) if other != name}
    between = {(package_of(a), package_of(b)) for a, b in edges} - {(a, a) for a in map(package_of, known)}
    commit = subprocess.run(["git", "-C", str(tree), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return Row(
        commit=commit.stdout.strip(),
        files=len(counted),
        median_lines=statistics.median(counted),
        longest=counted[-1],
        over_400=sum(count > LONG for count in counted),
        cyclic_modules=len(cyclic(edges)),
        cyclic_packages=len(cyclic(between)),
        journeys={name: journey(tree, words) for name, words in JOURNEYS.items()} if journeys else {},
    )


def main(words: list[str] | None = None) -> int:
    """Print the table and write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--no-journeys", action="store_true", help="leave out the three commands")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/structure.json"))
    asked = parser.parse_args(words)
    rows = [measure(tree, not asked.no_journeys) for tree in asked.trees]
    print(report.table([Size(**{field.name: getattr(row, field.name) for field in fields(Size)}) for row in rows]))
    print("\n" + report.table(journey_rows(rows)))
    report.write(
        asked.out,
        {"rows": [asdict(row) for row in rows], **origin("structure", sys.argv[1:] if words is None else words, 0)},
    )
    print("\nThe picture of the floors shows these journeys: python docs/floors.py")
    return 0


if __name__ == "__main__":
    sys.exit(main())
