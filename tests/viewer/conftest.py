"""A browser, and a result folder to look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.numbered import write_results
from tests.viewer.screen import Screen, launched, missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a browser where there is none. Marks, unlike fixtures, are told in one line for a file."""
    reason = missing()
    for item in items:
        if reason is not None and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    yield from launched()


@pytest.fixture
def screen(browser: Any) -> Iterator[Screen]:
    """A page at a desk. At the end, nothing has gone wrong in it, except that a test has ended its server."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    made = Screen(context.new_page())
    yield made
    context.close()
    assert [text for text in made.wrong if "ERR_CONNECTION_REFUSED" not in text] == []


@pytest.fixture(scope="session")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result folder that no test changes."""
    return write_results(tmp_path_factory.mktemp("viewer") / "tracked")
