"""Reports are JSON that any reader takes."""

import json
import math

import pytest

from scalor.documents import as_json, print_json


def test_what_could_not_be_measured_is_null_wherever_it_stands() -> None:
    document = {"mota": math.nan, "all": [1.5, math.inf, (2, -math.inf)], "of": {"mse": math.nan, "clips": 3}}
    plain = {"mota": None, "all": [1.5, None, [2, None]], "of": {"mse": None, "clips": 3}}
    assert json.loads(as_json(document), parse_constant=pytest.fail) == plain


def test_a_printed_document_ends_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"step": 1}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"step": 1}]
    assert printed.endswith("]\n")
