"""The page of results: its numbers are those of the files and of the paper, and of nothing else."""

from pathlib import Path

import pytest

from scalor.errors import InputError
from scalor.reproduce import page, paper
from scalor.reproduce.catalogue import COMPARED, SETTINGS, TABLES
from scalor.reproduce.results import Document, figure, read_all
from scalor.reproduce.sections import SECTIONS, seconds_until

from .fakes import METRICS, document, metrics, write

ROOT = Path(__file__).parent.parent.parent
FRAMES = [0.001 * (frame + 1) for frame in range(90)]
ROLLOUTS = {
    "observe": 10,
    **dict.fromkeys(("med", "med_constant_velocity", "med_copy_last", "lost"), FRAMES),
    **dict.fromkeys(("psnr", "ssim", "psnr_copy_last", "ssim_copy_last"), FRAMES),
}
RESEARCH = f"# Mine\n\nBefore.\n\n{page.BEGIN}\nold words\n{page.END}\n\nAfter.\n"


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir(exist_ok=True)
    Path("docs/research.md").write_text(RESEARCH)
    return tmp_path


def section(title: str) -> str:
    """A part of the page, newly written."""
    page.write(Path("results"))
    (text,) = [part for part in Path("docs/results.md").read_text().split("\n## ") if part.startswith(title)]
    return text


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


# Numbers ----------------------------------------------------------------------------------------------


def test_a_row_of_one_seed_shows_its_numbers_beside_those_of_the_paper() -> None:
    seen = metrics(paper_mota=0.91234, strict_mota=0.88, iou_mota=0.8, paper_precision=0.98, strict_switches=1500.0)
    write(Path("results"), document("tracking", "shapes-md", metrics=seen))
    text = section("Tracking")
    found = row(text, "shapes MD")
    assert found[1:5] == [".912", ".880", ".800", ".980"]
    assert found[8] == "1.50"  # switches of a clip
    assert found[11] == "200 s, 8 side by side"
    assert found[12:16] == [".935", ".978", ".959", ".041"]
    assert found[16:] == [".907 (quoted)", ".902 (quoted)", "-", "-", "-"]
    assert "A quoted figure is of 24 clips and not made here." in text


def test_several_seeds_are_shown_as_their_mean_and_range() -> None:
    for seed, mota in ((0, 0.9), (1, 0.7), (5, 0.8)):
        write(Path("results"), document("tracking", "shapes-md", seed, metrics=metrics(strict_mota=mota)))
    text = section("Tracking")
    assert row(text, "shapes MD")[1:3] == [".500", ".800 (.700 to .900)"]  # no range where there is none
    assert "<summary>Measured on a GPU, 2027-01-02; trained on a GPU, 2027-01-02; seeds 0, 1, 5; 1,000 clips." in text
    assert text.endswith(
        "- measured by `scalor reproduce tracking` (commit abc1234, a GPU, 2027-01-02)\n"
        "- trained by `scalor train all` (commit abc1234, a GPU, 2027-01-02)\n\n</details>\n"
    )
    assert "1,000 clips. Commands and commits: [results.md]" in Path("docs/research.md").read_text()


def test_a_training_whose_preset_has_changed_since_is_named_with_what_has_changed() -> None:
    then = {name: SETTINGS[name].config(0).to_dict() for name in ("shapes-hd", "shapes-ld")}
    for config in then.values():
        config["train"]["steps"] += 1
    unknown = {"model": {"of": "another version"}}
    write(
        Path("results"),
        document("tracking", "shapes-md"),
        *(document("tracking", name, asked={"config": config}) for name, config in then.items()),
        document("tracking", "shapes-vhd", asked={"config": unknown}),
    )
    (line,) = [line for line in section("Tracking").splitlines() if "older settings of their presets" in line]
    assert line.endswith(
        "makes again: shapes-hd, shapes-ld (the first setting that differs: train.steps); shapes-vhd (the first "
        "setting that differs: settings that there were then)"
    )


def test_the_page_ends_with_what_is_to_be_made_again_and_the_commands() -> None:
    old = document("tracking", "shapes-md")
    old["asked"]["config"]["train"]["steps"] += 1
    seen = metrics(iou_plain_mota=0.9, strict_plain_mota=0.8)
    balls = document("balls", "balls-occlusion", metrics=seen, rollouts=ROLLOUTS)
    write(Path("results"), old, document("tracking", "shapes-hd"), balls)
    text = section("What is to be made again")
    changed, missing = (line.split(" | ") for line in text.splitlines() if line.startswith("| tracking |"))
    assert changed[1:] == [
        "shapes-md",
        "made before train.steps changed",
        "`scalor reproduce tracking --setting md --seeds 0` |",
    ]
    assert missing[2] == "not measured yet"
    assert "shapes-hd" not in missing[1].split(", ")
    assert missing[1].startswith("shapes-vld, shapes-ld, shapes-vhd, ")
    bouncing = [line for line in text.splitlines() if line.startswith("| balls |")]
    assert len(bouncing) == 1
    assert "scalor reproduce balls --setting balls-interaction balls-two-layer balls-two-layer-dense" in bouncing[0]


def test_seeds_from_before_a_change_are_left_out_where_there_are_others() -> None:
    then = SETTINGS["shapes-hd"].config(0).to_dict()
    then["train"]["steps"] += 1
    old = {"asked": {"config": then}, "metrics": metrics(strict_mota=0.2)}
    for table in ("tracking", "likelihood"):
        write(Path("results"), document(table, "shapes-hd", seed=0, **old))
    write(
        Path("results"), *(document("tracking", "shapes-hd", seed, metrics=metrics(strict_mota=0.8)) for seed in (1, 2))
    )
    text = section("Tracking")
    assert row(text, "shapes HD")[2] == ".800"
    assert "seeds 1, 2;" in text
    assert "older settings of their presets" not in text
    assert "older settings of their presets" in section("Likelihood")


@pytest.mark.parametrize(("part", "setting", "told"), [("train", "steps", False), ("test", "objects", True)])
def test_a_tracker_that_is_not_trained_has_changed_with_its_test_scenes_alone(
    part: str, setting: str, told: bool
) -> None:
    then = SETTINGS["shapes-hd-classical-colour"].config(0).to_dict()
    then[part][setting] = {"steps": 3, "objects": [1, 2]}[setting]
    write(Path("results"), {**classical_document("colour", "shapes-hd"), "asked": {"config": then}})
    assert ("older settings of their presets" in section("Tracking")) == told


def test_a_row_without_a_result_says_so_and_keeps_the_figures_of_the_paper() -> None:
    write(Path("results"), document("tracking", "shapes-md"))
    found = row(section("Tracking"), "shapes VHD")
    assert found[1:12] == ["not measured yet", *[""] * 10]
    assert found[12:16] == [".846", ".968", ".881", ".091"]
    assert found[16:] == [".858 (quoted)", ".848 (quoted)", "-", "-", "-"]


def test_without_results_every_row_says_so() -> None:
    page.write(Path("results"))
    text = Path("docs/results.md").read_text()
    rows = sum(not SETTINGS[name].detect for settings in TABLES.values() for name in settings)
    looks, again = len(TABLES["generation"]), len(TABLES)  # rows of another table, and the table of what is to be made
    assert text.count("not measured yet") == rows + looks + again  # efficiency has a row in each of its two tables
    assert text.count("Nothing measured yet: `scalor reproduce ") == len(SECTIONS)


def test_the_paper_s_configuration_has_rows_of_its_own() -> None:
    write(Path("results"), document("tracking", "paper-shapes-md", metrics=metrics(strict_mota=0.321)))
    found = row(section("Tracking"), "shapes MD, the paper's configuration, our code")
    assert (found[2], found[12]) == (".321", ".935")


def classical_document(way: str, scenes: str = "shapes-md", **changes: float | None) -> Document:
    name = f"{scenes}-classical-{way}"
    seen = {**metrics(**changes), "mse": None}
    return document("tracking", name, system=f"classical, {way}", metrics=seen, training_provenance=None)


def test_a_measured_classical_tracker_takes_the_place_of_a_quoted_one() -> None:
    ours = document("tracking", "shapes-md", metrics=metrics(strict_mota=0.91))
    colour = classical_document("colour", paper_mota=0.99, strict_mota=0.98)
    write(Path("results"), ours, colour, classical_document("foreground"))
    text = section("Tracking")
    assert row(text, "shapes MD")[16:] == [".990", ".980", ".500", ".500", "classical, colour"]
    twin = row(text, "shapes MD, the paper's configuration, our code")
    assert twin[16:] == [".990", ".980", ".500", ".500", "-"]  # the same scenes, but nothing of ours to compare
    assert row(text, "shapes HD")[16] == ".877 (quoted)"
    assert row(Path("docs/research.md").read_text(), "shapes MD")[7:] == [".935", ".980", ".500", "classical, colour"]


@pytest.mark.parametrize(
    ("ours", "ahead"),
    [([0.99], "SCALOR"), ([0.9, 0.7], "classical, colour"), ([0.9], "SCALOR and classical, colour"), ([None], "-")],
)
def test_the_table_says_who_is_ahead(ours: list[float | None], ahead: str) -> None:
    """By the mean over seeds, to the digits that are shown."""
    for seed, mota in enumerate(ours):
        write(Path("results"), document("tracking", "shapes-md", seed, metrics=metrics(strict_mota=mota)))
    write(Path("results"), classical_document("colour", strict_mota=0.9001))
    assert row(section("Tracking"), "shapes MD")[-1] == ahead


def test_sqair_has_rows_of_its_own_beside_the_paper_s_figures_for_it() -> None:
    theirs = document("tracking", "sqair-shapes-ld", system="SQAIR", metrics=metrics(strict_mota=0.4))
    write(Path("results"), theirs)
    found = row(section("Tracking"), "shapes LD, SQAIR")
    assert (found[2], found[12:16]) == (".400", [".202", ".976", ".641", ".335"])
    assert (found[16], found[-1]) == (".938 (quoted)", "-")  # nothing of SCALOR's is measured there
    write(Path("results"), document("tracking", "shapes-ld", metrics=metrics(strict_mota=0.9)))
    text = section("Tracking")
    assert [row(text, name)[-1] for name in ("shapes LD", "shapes LD, SQAIR")] == ["SCALOR", "SCALOR"]
    assert row(Path("docs/research.md").read_text(), "shapes LD, SQAIR")[7] == ".202"


def test_classical_trackers_alone_are_told_of_without_a_training() -> None:
    write(Path("results"), *(classical_document("colour", scenes) for scenes in COMPARED))
    text = section("Tracking")
    assert "quoted" not in text
    assert "Measured on a GPU, 2027-01-02; nothing trained; seeds 0; 1,000 clips." in text


def test_likelihood_shows_every_system_and_says_that_the_paper_s_is_another() -> None:
    frames_alone = {name: METRICS[name] for name in ("clips", "mse", "nll_samples")}
    write(
        Path("results"),
        document("likelihood", "mnist-vld"),
        document("likelihood", "vrnn-mnist-vld", system="VRNN", metrics={**frames_alone, "nll": -16.25}),
        document("likelihood", "sqair-mnist-vld", system="SQAIR", metrics=metrics(nll=-15.5)),
    )
    text = section("Likelihood")
    found = row(text, "MNIST VLD")
    time = "200 s, 8 side by side"
    assert found[1:7] == ["-17.500", ".0021", time, "-16.250", ".0021", time]
    assert found[7:13] == ["-15.500", ".0021", time, "not measured yet", "", ""]
    assert found[13:] == ["7.45", ".0029", "7.62", ".0022", "7.75", ".0084"]
    assert row(text, "shapes MD")[7:10] == ["-", "-", "-"]  # SQAIR is not trained on so many objects
    assert "in other units and for its own data" in text
    assert "a bound from 10 importance-weighted samples, for all systems alike" in text


def test_likelihoods_of_different_bounds_are_not_called_alike() -> None:
    other = document("likelihood", "vrnn-shapes-md", metrics=metrics(nll_samples=50))
    write(Path("results"), document("likelihood", "shapes-md"), other)
    assert "a bound from 10, 50 importance-weighted samples, not as many for all" in section("Likelihood")


def test_ablation_shows_the_last_values() -> None:
    seen = metrics(propagation_rate=0.31, discoveries_per_clip=71.25)
    write(Path("results"), document("ablation", "paper-shapes-ablation-neither", metrics=seen))
    papers, ours, _ = section("Ablation").split("| propagation rate |")[1:]
    assert row(papers, "neither")[1:3] == [".310", "71.2"]
    assert row(papers, "neither")[-1] == "propagation rate falls to .30 and lower"
    assert row(ours, "neither")[1] == "not measured yet"


def test_each_remedy_left_out_has_a_row() -> None:
    write(Path("results"), document("ablation", "shapes-ablation-inertia", metrics=metrics(strict_mota=0.5)))
    assert row(section("Ablation"), "no inertia")[3] == ".500"


def test_generation_has_a_line_a_frame_ahead() -> None:
    ahead = [0.001 * step for step in range(1, 16)]
    forecast = {
        "mse": ahead,
        "mse_copy_last": [0.05] * 15,
        "centre": [None, *[1.5] * 14],
        "centre_constant_velocity": [2.5] * 15,
        "centre_copy_last": [9.0] * 15,
        "lost": [500] * 15,
    }
    write(Path("results"), document("generation", "shapes-md", forecast=forecast))
    text = section("Generation")
    assert row(text, "1") == ["1", ".0010", ".0500", "-", "2.50", "9.00", ".50"]
    assert row(text, "15") == ["15", ".0150", ".0500", "1.50", "2.50", "9.00", ".50"]
    assert text.count("not measured yet") == 2 + 3  # of forecasts, and of looks


def test_looks_after_30_frames_have_a_row_a_setting() -> None:
    forecast = {"mse": [0.1], "mse_copy_last": [0.2], "centre": [1.0], "lost": [0]}
    forecast |= {"centre_constant_velocity": [1.0], "centre_copy_last": [1.0]}
    looks = {"picture": [0.001, 0.0091], "mask_overlap": [0.99, 0.9], "colour": [0.01, 0.06], "left": [1.0, 0.25]}
    spread = {"spread_tracked": 0.05, "spread_imagined": 0.07}
    write(Path("results"), document("generation", "shapes-md", forecast=forecast, looks={**looks, **spread}))
    write(Path("results"), document("generation", "mnist-md", forecast=forecast))  # from before looks were measured
    text = section("Generation")
    assert row(text, "shapes MD")[1:] == [".0091", ".900", ".060", ".25", ".050", ".070"]
    assert row(text, "MNIST MD")[1] == "not measured yet"


def test_bouncing_balls_have_a_row_a_data_set() -> None:
    seen = metrics(iou_plain_mota=0.9, strict_plain_mota=0.8)
    write(Path("results"), document("balls", "balls-occlusion", metrics=seen, rollouts=ROLLOUTS))
    text = section("Bouncing balls")
    found = row(text, "occlusion")
    assert found[1:8] == [".900", ".800", ".0055", ".0055", ".0100", ".0300", ".0900"]
    assert found[8:13] == [".090", ".05", ".05", ".045", ".045"]
    assert row(text, "interaction")[1] == "not measured yet"
    assert "LPIPS is not measured" in text


def test_efficiency_has_a_row_a_system_and_device() -> None:
    def curve(*points: tuple[float, float]) -> list[dict[str, float]]:
        return [{"seconds": seconds, "mse": mse, "paper_mota": 1 - 100 * mse} for seconds, mse in points]

    speed = [{"objects": count, "ms_per_frame": 2.0 + count} for count in (4, 64)]
    slow = [{"objects": count, "ms_per_frame": 10.0 * count} for count in (4, 64)]
    write(
        Path("results"),
        document("efficiency", "shapes-md-gpu", device="cuda", speed=speed, training=[]),
        document("efficiency", "sqair-shapes-vld-gpu", device="cuda", speed=slow, training=[]),
        document("efficiency", "shapes-md-cpu", device="cpu", threads=2, speed=slow, training=[]),
        document("efficiency", "mnist-vld", speed=[], training=curve((5, 0.002), (10, 0.02), (20, 0.005), (30, 0.002))),
        document("efficiency", "sqair-mnist-vld", speed=[], training=curve((999, 0.02)), system="SQAIR"),
    )
    text = section("Efficiency")
    speeds, progress = text.split("MNIST VLD")
    assert row(speeds, "SCALOR, GPU") == ["SCALOR, GPU", "6.00", "66.00", "a GPU"]
    assert row(speeds, "SQAIR, GPU") == ["SQAIR, GPU", "40.00", "640.00", "a GPU"]
    assert row(speeds, "SCALOR, CPU") == ["SCALOR, CPU", "40.00", "640.00", "a GPU, threads: 2"]
    assert row(speeds, "SQAIR, CPU") == ["SQAIR, CPU", "not measured yet", "", ""]
    assert row(progress, "SCALOR")[1:5] == ["20", "30", ".0020", ".800"]
    assert row(progress, "SQAIR")[1:5] == ["-", "-", ".0200", "-1.000"]


def test_generalisation_shows_the_scenes_trained_on_where_they_are_others() -> None:
    write(
        Path("results"),
        document("generalisation", "shapes-crowd", metrics_as_trained=metrics(strict_mota=0.99)),
        document("generalisation", "shapes-dense-discovery"),
    )
    text = section("Generalisation")
    lines = [line for line in text.splitlines() if line.startswith(f"| {SETTINGS['shapes-crowd'].label} |")]
    assert [line.split("|")[4].strip() for line in lines] == [".500", ".990"]
    assert row(text, SETTINGS["shapes-dense-discovery"].label)[1] == "the test scenes"


def test_the_replay_is_called_semi_synthetic_and_systems_without_objects_have_a_likelihood_alone() -> None:
    frames_alone = {name: METRICS[name] for name in ("clips", "mse", "nll", "nll_samples")}
    write(
        Path("results"),
        document("replay", "grand-central-replay", metrics=metrics(nll=-30.0)),
        document("replay", "vrnn-grand-central-replay", system="VRNN", metrics=frames_alone),
    )
    text = section("Grand Central, a semi-synthetic replay")
    time = "200 s, 8 side by side"
    tracked = [".500", ".500", ".500", ".600", ".500", ".050"]
    assert row(text, "SCALOR")[1:] == [*tracked, "-30.000", ".0021", time, "28.30"]
    assert row(text, "VRNN")[1:] == [*["-"] * 6, "-17.500", ".0021", time, "27.79"]
    assert row(text, "sequential VAE")[1:] == ["not measured yet", *[""] * 8, "27.59"]
    assert "the people are drawn" in text
    assert "a bound from 10 importance-weighted samples" in text
    assert "semi-synthetic replay of Grand Central" in Path("docs/research.md").read_text()


def test_what_could_not_be_measured_is_a_dash() -> None:
    write(Path("results"), document("tracking", "shapes-md", metrics=metrics(hota=None)))
    old = document("tracking", "shapes-hd")
    old["training_provenance"] |= {"seconds": None, "side_by_side": None}
    write(Path("results"), old)
    text = section("Tracking")
    assert row(text, "shapes MD")[6] == "-"
    assert row(text, "shapes HD")[11] == "unknown"


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.9164, 3, ".916"),
        (-0.2, 3, "-.200"),
        (-0.0001, 3, ".000"),
        (1234.5, 1, "1,234.5"),
        (0.4, 0, "0"),
        (None, 3, "-"),
    ],
)
def test_a_figure_is_written_as_the_readme_does(value: float | None, digits: int, shown: str) -> None:
    assert figure(value, digits) == shown


def test_every_figure_of_the_paper_belongs_to_a_setting() -> None:
    for quoted in (paper.TRACKING, paper.CLASSICAL):
        assert set(quoted) <= set(TABLES["tracking"])
    assert set(paper.LIKELIHOOD) <= set(TABLES["likelihood"])
    assert set(paper.ABLATION) <= set(TABLES["ablation"])
    assert set(paper.NATURAL_NLL) < set(TABLES["replay"])


# Pages ------------------------------------------------------------------------------------------------


def test_of_the_research_page_only_the_results_change() -> None:
    write(Path("results"), document("tracking", "shapes-md", metrics=metrics(strict_mota=0.777)))
    assert page.write(Path("results")) == [Path("docs/results.md"), Path("docs/research.md")]
    text = Path("docs/research.md").read_text()
    before, rest = RESEARCH.split(page.BEGIN)
    assert text.startswith(before + page.BEGIN)
    assert text.endswith(rest[rest.index(page.END) :])
    assert "old words" not in text
    assert row(text, "shapes MD")[2] == ".777"
    assert "[results.md](results.md)" in text
    page.write(Path("results"))
    assert Path("docs/research.md").read_text() == text


@pytest.mark.parametrize("readme", [None, "# Mine\n", f"{page.END}\n{page.BEGIN}\n", f"{page.BEGIN}\n" * 2 + page.END])
def test_a_page_without_a_place_for_results_is_refused(readme: str | None) -> None:
    Path("docs/research.md").unlink()
    if readme is not None:
        Path("docs/research.md").write_text(readme)
    with pytest.raises(InputError, match=r"^docs/research\.md must hold the lines <!-- results: begin --> and "):
        page.write(Path("results"))
    assert not Path("docs/results.md").exists()


def test_pictures_are_shown_where_they_exist() -> None:
    folder = Path("docs/pictures/results")
    folder.mkdir(parents=True)
    for name in ("ablation", "conditional-shapes-md"):
        (folder / f"{name}.png").touch()
    assert "![ablation](pictures/results/ablation.png)" in section("Ablation")
    assert "![conditional shapes md](pictures/results/conditional-shapes-md.png)" in section("Generation")
    assert "![" not in section("Tracking")


@pytest.mark.parametrize("text", ["{}", "[]", "not JSON"])
def test_a_file_that_is_no_result_is_refused(text: str) -> None:
    Path("results/tracking").mkdir(parents=True)
    Path("results/tracking/mine.json").write_text(text)
    with pytest.raises(InputError, match=r"^results/tracking/mine\.json is not a result of scalor reproduce"):
        page.write(Path("results"))


def test_a_result_under_another_s_name_is_refused() -> None:
    write(Path("results"), document("tracking", "shapes-md"))
    Path("results/tracking/shapes-md-seed0.json").rename("results/tracking/shapes-hd-seed0.json")
    with pytest.raises(InputError, match="says it is tracking/shapes-md-seed0: give the file that name"):
        page.write(Path("results"))


def test_the_page_in_the_repository_is_what_its_results_give() -> None:
    documents = read_all(ROOT / "results")
    if not documents:
        pytest.skip("there are no results yet")
    assert (ROOT / "docs/results.md").read_text() == page.whole_page(documents, ROOT / "docs")
    assert f"{page.BEGIN}\n{page.research_part(documents)}{page.END}" in (ROOT / "docs" / "research.md").read_text()


@pytest.mark.parametrize(
    ("errors", "since"),
    [
        ([0.9, 0.1, 0.1], 1.0),
        ([0.1, 0.1, 0.1], 0.0),  # the first measurement is made before any training
        ([0.1, 0.9, 0.1], 2.0),
        ([0.1, None, 0.1], 2.0),
        ([0.1, 0.1, 0.9], None),
        ([], None),
    ],
)
def test_an_error_is_reached_when_it_is_no_longer_exceeded(errors: list[float | None], since: float | None) -> None:
    training = [{"mse": mse, "seconds": float(number)} for number, mse in enumerate(errors)]
    assert seconds_until(0.5)({"training": training}) == since
