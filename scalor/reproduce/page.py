"""docs/results.md and the results in README.md, written from the result files and the paper's own figures."""

from collections.abc import Sequence
from pathlib import Path

from scalor.errors import InputError
from scalor.files import open_folder, replacing
from scalor.reproduce.markdown import brief, origin, outdated
from scalor.reproduce.results import Document, read_all
from scalor.reproduce.sections import SECTIONS, short_tracking

PAGE, README = Path("docs/results.md"), Path("README.md")
FIGURES = PAGE.parent / "pictures/results"
PICTURES = {
    "tracking": (
        *("tracking-shapes-md", "tracking-shapes-hd", "tracking-shapes-vhd", "tracking-mnist-md", "background"),
        *("tracking-sqair-shapes-ld", "tracking-sqair-mnist-vld"),
    ),
    "generation": (
        *("prediction", "conditional-shapes-md", "conditional-background", "conditional-mnist-md", "scratch"),
    ),
    "generalisation": ("crowd", "unseen-digits", "dense-discovery", "occlusion", "length"),
}
"""Pictures of a table, after the one of its own name; shown where they exist."""
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write(results: Path) -> list[Path]:
    """Write both pages of the current folder; returns their names."""
    readme = README.read_text() if README.exists() else ""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise InputError(
            f"{README} must hold the lines {BEGIN} and {END} once each, in this order: add them where the results "
            "belong, and call from the folder that it is in."
        )
    documents = read_all(results)
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    open_folder(PAGE.parent)
    for path, text in (
        (PAGE, whole_page(documents, PAGE.parent)),
        (README, f"{before}{BEGIN}\n{readme_part(documents)}{END}{after}"),
    ):
        with replacing(path) as beside:
            beside.write_text(text)
    return [PAGE, README]


def whole_page(documents: Sequence[Document], folder: Path) -> str:
    """The page for a folder, which may hold pictures for it."""
    lines = [
        "# Results",
        "",
        "Written by `scalor reproduce page` from the files under `results/`; do not edit. Each figure is the mean over",
        "seeds, with the range in brackets where they differ. Scenes, gates and metrics:",
        "[scenes_and_metrics.md](scenes_and_metrics.md). The paper's figures are for its own data, which was never",
        "released: they say what to expect, not who is better.",
    ]
    for name, (title, section) in SECTIONS.items():
        own = [document for document in documents if document["table"] == name]
        lines += ["", f"## {title}", ""]
        for picture in (name, *PICTURES.get(name, ())):
            if (folder / f"pictures/results/{picture}.png").exists():
                lines += [f"![{picture.replace('-', ' ')}](pictures/results/{picture}.png)", ""]
        lines += [*section(own), "", *origin(own, name)]
    return "\n".join(lines) + "\n"


def readme_part(documents: Sequence[Document]) -> str:
    """The tracking table in short, and the way to all the others."""
    own = [document for document in documents if document["table"] == "tracking"]
    more = (
        "Likelihood beside other systems, ablation, generation, efficiency, generalisation, a semi-synthetic replay of "
        "Grand Central, each as far as it is measured: [docs/results.md](docs/results.md)."
    )
    made = (
        [f"{brief(own)} Commands and commits: [docs/results.md](docs/results.md)."] if own else origin(own, "tracking")
    )
    made += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in outdated(own)]
    return "\n".join([*short_tracking(own), "", *made, "", more]) + "\n"
