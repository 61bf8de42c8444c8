"""Write the list of files in docs/architecture.md, from docstrings: `python docs/file_tree.py`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## The files\n"


def first_line(file: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    return docstring.splitlines()[0] if docstring else ""


def file_tree() -> str:
    """Return the list of the package's files, folder by folder, as Markdown."""
    package = ROOT / "scalor"
    folders = [package, *sorted(path.parent for path in package.glob("*/**/__init__.py"))]
    parts = []
    for folder in folders:
        files = sorted(file for file in folder.glob("*.py") if not file.name.startswith("__"))
        about = first_line(folder / "__init__.py")
        lines = [f"**`{folder.relative_to(ROOT)}/`** {about}", ""]
        parts.append("\n".join(lines + [f"- `{file.name}`: {first_line(file)}" for file in files]))
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """Return docs/architecture.md with today's list of files."""
    return PAGE.read_text().split(HEADING)[0] + HEADING + "\n" + file_tree()


if __name__ == "__main__":
    PAGE.write_text(page())
