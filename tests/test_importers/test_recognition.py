"""The measure of `benchmarks/recognition.py`, with fewer mutations."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import recognition

from lim_core.importers import import_file

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "nq-open-oracle.jsonl.gz"


@pytest.mark.parametrize("name", sorted(path.name for path in recognition.FIXTURES.iterdir()))
def test_every_fixture_is_recognised(name: str) -> None:
    seen = recognition.see((recognition.FIXTURES / name).read_bytes(), name)
    assert seen.format == recognition.expected_format(name)


def test_mutations_are_recognised_and_never_taken_for_another_shape() -> None:
    for name, kind, data in recognition.mutants(80, seed=3):
        want = recognition.see((recognition.FIXTURES / name).read_bytes(), name)
        seen = recognition.see(data, name)
        assert seen.format == want.format, (name, kind)
        assert sorted(seen.texts) == sorted(want.texts), (name, kind)


def test_the_published_questions_are_read() -> None:
    if not DATA.exists():
        pytest.skip("the published questions are not at ../shared/data")
    imported = import_file(DATA.read_bytes(), DATA.name)
    assert imported.report.format == "liu"
    assert len(imported.cases) > 2_000
    assert all(case.gold_ids and case.answers for case in imported.cases)
