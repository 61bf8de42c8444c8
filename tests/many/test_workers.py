"""Who works on many videos."""

from typing import Any

import pytest

import scalor
from scalor.many.workers import Workers


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"engine": "dask"}, "engine is 'dask': choose from local, ray"),
        ({"count": 0}, "count is 0: give a number of workers from 1"),
        ({"gpus": -0.5}, r"gpus is -0\.5: give a number from 0"),
        ({"gpus": float("nan")}, "gpus is nan: give a number from 0"),
        ({"retries": -1}, "retries is -1: give a number from 0"),
    ],
)
def test_each_field_is_checked(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(scalor.InputError, match=sentence):
        Workers(**fields)
