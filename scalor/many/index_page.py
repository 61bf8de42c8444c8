"""`index.html`: all videos of a run with their state, verdict, counts, and links to their reports."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from scalor.files import replacing
from scalor.many.video_records import VIDEOS, VideoOutcome
from scalor.provenance import command_line, commit, today

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1c1c1c; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .35rem .7rem; }
th { border-bottom: 2px solid #999; } td { border-bottom: 1px solid #ddd; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: #20702c; } .doubtful { color: #8a5a00; } .bad { color: #a3231b; } .quiet { color: #666; }
"""
CLASSES = {"good": "good", "doubtful": "doubtful", "not to be trusted": "bad"}


def write_index(out: Path, outcomes: Sequence[VideoOutcome]) -> Path:
    """Write the page into the folder of all results; failed videos come first, then by verdict."""
    order = {"not to be trusted": 1, "doubtful": 2, None: 3, "good": 4}
    ordered = sorted(outcomes, key=lambda one: (0 if one.state == "failed" else order.get(one.verdict, 3), one.name))
    path = out / "index.html"
    with replacing(path) as temporary:
        temporary.write_text(page(ordered), encoding="utf-8", errors="backslashreplace")
    return path


def page(outcomes: Sequence[VideoOutcome]) -> str:
    """Return the page."""
    failed = sum(one.state == "failed" for one in outcomes)
    frames, objects = sum(one.frames for one in outcomes), sum(one.objects for one in outcomes)
    missing = f", <span class=bad>{failed} failed</span>" if failed else ""
    rows = "\n".join(map(row, outcomes))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{len(outcomes)} videos</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{STYLE}</style></head><body>
<h1>{len(outcomes):,} videos{missing}</h1>
<p>{frames:,} frames, {objects:,} ids. All tables are in <code>store/</code>; <code>manifest.json</code> lists them.</p>
<table><thead><tr><th>video</th><th>health</th><th class=number>frames</th><th class=number>ids</th>
<th class=number>objects per frame</th><th class=number>seconds</th><th>file</th></tr></thead><tbody>
{rows}
</tbody></table>
<p class=quiet>{escape(command_line())}<br>commit {escape(commit())}, {today()}</p>
</body></html>
"""


def row(one: VideoOutcome) -> str:
    """Return the row of a video."""
    if one.state == "failed":
        return (
            f"<tr><td>{escape(one.name)}</td><td class=bad>failed</td><td colspan=4>{escape(one.reason)}</td>"
            f"<td class=quiet>{escape(one.video)}</td></tr>"
        )
    link = f"{VIDEOS}/{quote(one.name)}/report.html"
    verdict = one.verdict or "not judged"
    each = one.rows / one.frames if one.frames else 0.0
    return (
        f'<tr><td><a href="{link}">{escape(one.name)}</a></td>'
        f'<td class="{CLASSES.get(verdict, "quiet")}">{verdict}</td>'
        f"<td class=number>{one.frames:,}</td><td class=number>{one.objects:,}</td><td class=number>{each:.1f}</td>"
        f"<td class=number>{one.seconds:.1f}</td><td class=quiet>{escape(one.video)}</td></tr>"
    )
