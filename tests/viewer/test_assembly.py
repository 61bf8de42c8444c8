"""The program of the page is one script that is safe to put into a page."""

import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256

import pytest

from scalor.viewer.assembly import MODULES, PAGE, elements, policy, program


def test_every_module_is_in_the_program_after_those_it_imports() -> None:
    assert {f"{name}.js" for name in MODULES} == {path.name for path in PAGE.glob("*.js")}
    for place, name in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+)\.js"', (PAGE / f"{name}.js").read_text())
        assert set(imported) <= set(MODULES[:place]), name
    assert "import {" not in program()
    assert not re.search(r"^export", program(), re.MULTILINE)


def test_nothing_in_the_program_ends_the_script_or_makes_markup_of_text() -> None:
    assert "</script" not in program().lower()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in program(), word


def test_the_policy_allows_this_program_alone() -> None:
    own = b64encode(sha256(program().encode()).digest()).decode()
    for source in ("files", "server"):
        rules = dict(rule.split(" ", 1) for rule in policy(source).split("; "))
        assert rules["default-src"] == "'none'"
        assert f"'sha256-{own}'" in rules["script-src"]
        assert "unsafe" not in rules["script-src"]
    assert "file:" not in policy("server")


def test_where_data_lie_is_escaped() -> None:
    assert 'data-base="a&quot;&gt;b"' in elements("files", 'a">b')


def test_the_types_in_comments_hold() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("needs tsc: npm install --global typescript")
    options = "--noEmit --checkJs --allowJs --strict --target es2022 --lib es2023,dom,dom.iterable --module es2022"
    done = subprocess.run([compiler, *options.split(), PAGE / "main.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
