"""Requests that do not come from the page are not answered, and nothing outside the folder is."""

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from scalor.errors import InputError
from scalor.files import as_json
from scalor.server.app import build, new_token
from scalor.server.session import Session
from tests.outputs.stories import contents

TOKEN = "token-of-this-test"
JSON = {"content-type": "application/json"}


@pytest.fixture
def client(folder: Path) -> TestClient:
    (folder.parent / "secret.txt").write_text("not for the page")
    return TestClient(build(Session(folder), TOKEN), base_url="http://127.0.0.1:8642")


def test_the_page_and_its_data_are_there_with_the_token(client: TestClient) -> None:
    assert client.get(f"/{TOKEN}/").headers["content-type"].startswith("text/html")
    assert client.get(f"/{TOKEN}/data/index").json()["tracks"]["id"] == [1, 2, 3, 4, 5]
    assert client.get(f"/{TOKEN}/data/rows-0").json()["start"] == 0
    assert client.get(f"/{TOKEN}/data/rows-1").status_code == 404
    part = client.get(f"/{TOKEN}/video.mp4", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")


@pytest.mark.parametrize("path", ["/", "/data/index", "/wrong/", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/data/index", "//", ""])
def test_nothing_is_there_without_the_token(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.text) == (404, "not found")


def test_tokens_are_long_and_differ() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 32


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "[", "10.0.0.7"])
def test_another_host_is_refused_even_with_the_token(client: TestClient, host: str) -> None:
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost", "localhost:1234", "[::1]:8642"])
def test_a_forwarded_port_is_allowed(client: TestClient, host: str) -> None:
    assert client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example", **JSON},
        {"origin": "null", **JSON},
        {"sec-fetch-site": "cross-site", **JSON},
        {"sec-fetch-site": "same-site", **JSON},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_an_edit_from_another_page_changes_nothing(client: TestClient, folder: Path, headers: dict[str, str]) -> None:
    before = contents(folder)
    answer = client.post(f"/{TOKEN}/edit", content=json.dumps({"op": "delete", "id": 1}), headers=headers)
    assert answer.status_code in (403, 415)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/data/..%2f..%2fsecret.txt",
        "/video.mp4/../../secret.txt",
        "/data/rows-0/../../../secret.txt",
        "/data/rows--1",
        "/data/rows-0.js",
        "/tracks.csv",
        "/%00",
        "//etc/passwd",
        "/report_viewer/video.mp4",
    ],
)
def test_no_path_leads_out_of_the_page(client: TestClient, path: str) -> None:
    answer = client.get(f"/{TOKEN}{path}")
    assert answer.status_code in (400, 404)
    assert "not for the page" not in answer.text


def test_a_video_that_becomes_a_link_out_of_the_folder_is_not_served(client: TestClient, folder: Path) -> None:
    film = folder / "report_viewer" / "video.mp4"
    film.unlink()
    os.symlink(folder.parent / "secret.txt", film)
    answer = client.get(f"/{TOKEN}/video.mp4")
    assert answer.status_code == 404
    assert "not for the page" not in answer.text


def test_answers_forbid_what_the_page_does_not_need(client: TestClient) -> None:
    headers = client.get(f"/{TOKEN}/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_a_long_request_is_refused(client: TestClient) -> None:
    answer = client.post(f"/{TOKEN}/edit", content=b" " * 2_000_000, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'{"op": "sudo"}', b'{"op": "swap", "a": "1"}', b"\xff"])
def test_a_request_that_is_no_edit_is_told_so(client: TestClient, folder: Path, body: bytes) -> None:
    before = contents(folder)
    answer = client.post(f"/{TOKEN}/edit", content=body, headers=JSON)
    assert answer.status_code == 400
    assert ("op is 'sudo'" in answer.json()["error"]) == (b"sudo" in body)
    assert contents(folder) == before


def test_a_folder_without_the_data_of_the_page_is_told_so(folder: Path) -> None:
    (folder / "report_viewer" / "index.js").unlink()
    with pytest.raises(InputError, match="track the video again"):
        Session(folder)


def test_a_damaged_index_is_told_so(folder: Path) -> None:
    (folder / "report_viewer" / "index.js").write_text("scalorData(" + as_json([{}]))
    with pytest.raises(InputError, match="damaged"):
        Session(folder)
