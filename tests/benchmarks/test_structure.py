"""The figures of benchmarks.structure on small trees whose import graph is known."""

from pathlib import Path

import pytest

from benchmarks.structure import cyclic, imports, measure, modules

FILES = {
    "scalor/__init__.py": "",
    "scalor/low/__init__.py": "",
    "scalor/low/a.py": "value = 1\n" * 21,
    "scalor/high/__init__.py": "",
    "scalor/high/b.py": "from scalor.low import a\nfrom scalor.low.a import value\n" + "x = 1\n" * 28,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_that_point_one_way_make_no_cycle(tree: Path) -> None:
    row = measure(tree, journeys=False)
    assert (row.files, row.median_lines, row.longest) == (2, 25.5, 30)
    assert (row.cyclic_modules, row.cyclic_packages) == (0, 0)


def test_an_import_inside_a_function_closes_a_cycle(tree: Path) -> None:
    path = tree / "scalor/low/a.py"
    path.write_text(path.read_text() + "def later():\n    from scalor.high.b import x\n    return x\n")
    row = measure(tree, journeys=False)
    assert (row.cyclic_modules, row.cyclic_packages) == (2, 2)


def test_imports_for_type_checkers_are_not_counted(tree: Path) -> None:
    path = tree / "scalor/low/a.py"
    path.write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from scalor.high.b import x\n")
    assert list(imports(path, modules(tree))) == []


def test_a_cycle_of_three_is_found_and_what_leads_to_it_is_not() -> None:
    assert cyclic({("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")}) == {"a", "b", "c"}
