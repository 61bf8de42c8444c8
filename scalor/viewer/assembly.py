"""The parts of the viewer's page as text: its elements, its style, its program and its security policy.

Browsers load no modules into a page opened as a file. The modules in `page/` are therefore joined to one script, which
the page holds itself. Each module becomes a function that returns what it exports.
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

PAGE = Path(__file__).parent / "page"
MODULES = ("data", "colors", "stage", "player", "timeline", "table", "sketch", "editor", "main")
"""Modules of the program, each after those that it imports."""
IMPORT = re.compile(r'^import (\{.*\}) from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (class|function) (\w+)", re.MULTILINE)


@cache
def program() -> str:
    """Return the program of the page as one script."""
    return '"use strict";\n' + "".join(map(_as_function, MODULES))


def _as_function(module: str) -> str:
    """Return a module as a function that is called at once and returns what the module exports."""
    source = (PAGE / f"{module}.js").read_text("utf-8")
    names = ", ".join(name for _, name in EXPORT.findall(source))
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(r"const \1 = \2;", source))
    return f"const {module} = (() => {{\n{body}return {{ {names} }};\n}})();\n"


@cache
def style() -> str:
    """Return the style of the player."""
    return (PAGE / "style.css").read_text("utf-8")


def elements(source: str, base: str) -> str:
    """Return the elements of the player.

    Parameters
    ----------
    source : str
        "files" for data beside the page, "server" for data of `scalor view`.
    base : str
        Folder of the data, relative to the page.
    """
    markup = (PAGE / "index.html").read_text("utf-8")
    return markup.replace('id="scalor"', f'id="scalor" data-source="{escape(source)}" data-base="{escape(base)}"', 1)


def policy(source: str) -> str:
    """Return the content security policy of the page: its own program, data from its own place, and nothing else."""
    own = f"'sha256-{b64encode(sha256(program().encode()).digest()).decode('ascii')}'"
    rules = {
        "default-src": "'none'",
        "script-src": own if source == "server" else f"{own} 'self' file:",
        "style-src": "'unsafe-inline'",
        "img-src": "'self' data:",
        "media-src": "'self' file:" if source == "files" else "'self'",
        "connect-src": "'self'" if source == "server" else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
