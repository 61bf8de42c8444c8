"""Writing of docs/results.md and of the results in docs/research.md, from the result files and the paper's numbers."""

from collections.abc import Sequence
from pathlib import Path

from scalor.errors import InputError
from scalor.files import open_folder, replacing
from scalor.reproduce.results import Document, brief, origin, outdated, read_all, to_be_made
from scalor.reproduce.sections import SECTIONS, short_tracking

PAGE, RESEARCH = Path("docs/results.md"), Path("docs/research.md")
FIGURES = PAGE.parent / "pictures/results"
PICTURES = {
    "tracking": (
        *("tracking-shapes-md", "tracking-shapes-hd", "tracking-shapes-vhd", "tracking-mnist-md", "background"),
        *("tracking-sqair-shapes-ld", "tracking-sqair-mnist-vld"),
    ),
    "generation": (
        *("prediction", "conditional-shapes-md", "conditional-background", "conditional-mnist-md", "scratch"),
        *("lasting-shapes-md", "lasting-mnist-md"),
    ),
    "replay": ("replay-learned",),
    "generalisation": ("crowd", "unseen-digits", "dense-discovery", "occlusion", "length"),
}
"""Pictures of each table, after the one with the table's name; missing files are skipped."""
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write(results: Path) -> list[Path]:
    """Write both pages in the current folder; return their paths."""
    page = RESEARCH.read_text() if RESEARCH.exists() else ""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise InputError(
            f"{RESEARCH} must hold the lines {BEGIN} and {END} once each, in this order: add them where the results "
            "belong, and call from the folder that it is in."
        )
    documents = read_all(results)
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    open_folder(PAGE.parent)
    for path, text in (
        (PAGE, whole_page(documents, PAGE.parent)),
        (RESEARCH, f"{before}{BEGIN}\n{research_part(documents)}{END}{after}"),
    ):
        with replacing(path) as beside:
            beside.write_text(text)
    return [PAGE, RESEARCH]


def whole_page(documents: Sequence[Document], folder: Path) -> str:
    """Return the text of docs/results.md; pictures are linked if they exist in the folder."""
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
    lines += [
        "",
        "## What is to be made again",
        "",
        "A preset may change after its results were made. The results stay on this page until they are made again, by",
        "these commands. Everything else on this page was made with the presets of this version.",
        "",
        *to_be_made(documents),
    ]
    return "\n".join(lines) + "\n"


def research_part(documents: Sequence[Document]) -> str:
    """Return the results section of docs/research.md: a short tracking table and a link to all tables."""
    own = [document for document in documents if document["table"] == "tracking"]
    more = (
        "Likelihood beside other systems, ablation, generation, efficiency, generalisation, a semi-synthetic replay of "
        "Grand Central, each as far as it is measured: [results.md](results.md)."
    )
    made = [f"{brief(own)} Commands and commits: [results.md](results.md)."] if own else origin(own, "tracking")
    made += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in outdated(own)]
    return "\n".join([*short_tracking(own), "", *made, "", more]) + "\n"
