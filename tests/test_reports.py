"""Reports and exports of real stored runs: nothing gets out of its place, nothing is missing, nothing private stays."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import pandas
import pytest

from lim_core import cli
from lim_core.drawing.figures import THEMED
from lim_core.errors import InputError
from lim_core.reports import MOST_BYTES, html_report
from lim_core.reports.markup import text
from lim_core.reports.page import DARK, LIGHT
from lim_core.reports.redaction import STRUCK, Redaction
from lim_core.store import Store
from lim_core.types import Chunk, Message
from tests.reported import BREAKOUT, HOSTILE, NEEDLE, PLANS, a_case, diagnose_into, experiment_into
from tests.stored import a_trial, put, start

PRIVATE = ("herring", "Quay note", "Harbour ledger", "keeper of the harbour", NEEDLE, "Somebody else", "Page 3")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a diagnosis and one experiment of each kind."""
    file = tmp_path_factory.mktemp("reports") / "lim.duckdb"
    with Store.open(file) as store:
        diagnose_into(store)
        for kind in PLANS:
            experiment_into(store, kind)
    return file


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


class Seen(HTMLParser):
    """What a browser makes of a file: its tags with attributes, its scripts, its visible text."""

    def __init__(self, file: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._within: list[str] = []
        self.feed(file.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within.append(tag)
        self.words.append("\n")
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        while self._within and self._within.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._within and self._within[-1] == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif not self._within or self._within[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def data(self) -> list[object]:
        return [json.loads(code) for attributes, code in self.scripts if attributes.get("type") == "application/json"]


RUNS = ("d1", *PLANS)


@pytest.mark.parametrize("run_id", RUNS)
def test_no_document_breaks_out_of_the_page(store: Store, run_id: str) -> None:
    seen = Seen(html_report(store, run_id))
    # Every tag is one that the report writes itself; none of the hostile ones became an element.
    assert not {"img", "b", "iframe", "link", "a", "form", "object", "base"} & {tag for tag, _ in seen.tags}
    assert not any(name.startswith("on") for _, attributes in seen.tags for name in attributes)
    assert BREAKOUT in seen.text  # shown as it reads
    code = [code for attributes, code in seen.scripts if "type" not in attributes]
    assert len(code) == 2
    assert not any("document.title='owned'" in one for one in code)
    # The policy lets in exactly the two scripts.
    policy = next(a["content"] for tag, a in seen.tags if tag == "meta" and "http-equiv" in a)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in code]
    assert re.findall(r"'sha256-([^']+)'", str(policy)) == hashes
    assert str(policy).startswith("default-src 'none'; ")
    assert "script-src 'unsafe" not in str(policy)


@pytest.mark.parametrize("run_id", RUNS)
def test_figures_in_scripts_are_escaped_and_whole(store: Store, run_id: str) -> None:
    seen = Seen(html_report(store, run_id))
    for attributes, code in seen.scripts:
        if attributes.get("type") == "application/json":
            assert not re.search("[<>&\u2028\u2029]", code)
    drawings = [one for one in seen.data if isinstance(one, dict) and "layout" in one]
    plots = [attributes for _, attributes in seen.tags if attributes.get("class") == "plot"]
    assert len(drawings) == len(plots) >= 1
    assert all(plot["role"] == "img" and len(str(plot["aria-label"])) > 20 for plot in plots)
    # A table stands below each chart.
    names = [tag for tag, _ in seen.tags if tag in ("figure", "table")]
    for place, name in enumerate(names):
        assert name == "table" or names[place + 1] == "table"


def test_a_diagnosis_reads_from_the_top(store: Store) -> None:
    made = html_report(store, "d1")
    seen = Seen(made)
    assert re.findall("<h[12]>(?:<span.*?</span>)? ?(.*?)</h[12]>", made.decode()) == [
        "Lost in the middle",
        "Stages",
        "Answers by slot of the evidence",
        "The prompt as sent",
        "Remedies",
        "Outcomes by arm",
        "Trials",
        "The case",
        "Release and settings",
        "Make it again",
    ]
    assert "e = " in seen.text
    assert "scripted:" in seen.text  # the release
    document = store.document("d1")
    assert document is not None
    point = document["position"]["points"][0]  # type: ignore[index,call-overload]
    assert f"{point['correct']}" in seen.text  # type: ignore[index,call-overload]
    assert HOSTILE.split("\u2028")[0] in seen.text  # the chunk texts
    assert "Use it: " in seen.text
    assert "def arrange(question, texts):" in seen.text
    rows = sum(1 for tag, _ in seen.tags if tag == "tr")
    assert rows > store.count_trials("d1")


def test_each_experiment_shows_its_own_figures(store: Store) -> None:
    expected = {
        "positions": ("Position curves", "Each case's own curve", "What each slot costs", "not measured here", "Liu"),
        "tokens": ("Accuracy against prompt tokens", "How the trials of each cut ended"),
        "orderings": ("Paired gains", "Which rank lands in which slot"),
        "grid": ("Answers by length and depth", "Whether each length keeps"),
    }
    for kind, words in expected.items():
        seen = Seen(html_report(store, kind))
        for word in words:
            assert word in seen.text
        assert "6 cases" in seen.text
        assert f"{store.count_trials(kind)} of {store.count_trials(kind)} trials" in seen.text


@pytest.mark.parametrize("run_id", RUNS)
def test_a_redacted_report_holds_no_text_of_the_case(store: Store, run_id: str) -> None:
    made = html_report(store, run_id, redact=True)
    library = max((code for _, code in Seen(made).scripts), key=len)
    rest = made.decode().replace(library, "")
    for word in PRIVATE:
        assert word not in rest
    assert "Redacted:" in rest
    assert "right" in rest
    whole = html_report(store, run_id).decode().replace(library, "")
    for word in PRIVATE:
        assert word in whole, word  # the test can fail


def test_redaction_strikes_quotations_and_values_but_no_figures() -> None:
    case = replace(
        a_case(), answers=("21:40",), chunks=(Chunk("c1", "Before the war, boats left at seven o'clock sharp."),)
    )
    document = {"stages": [{"evidence": {"conflicts": [{"ids": ["c1"], "values": ["21:40", "90 days"]}]}}]}
    redaction = Redaction([case], ["The model says that nothing leaves"], document)
    said = redaction.strike(
        "Chunk c1 says 90 Days, not 21:40; right in 8 of 8. It holds: boats  left at seven o'clock sharp!"
    )
    assert said == f"Chunk c1 says {STRUCK}, not {STRUCK}; right in 8 of 8. It holds: {STRUCK}!"
    assert redaction.strike("The model says that nothing was sent") == f"{STRUCK} was sent"
    assert redaction.strike("190 days at 121:40") == "190 days at 121:40"
    struck = redaction.document({"cause": "21:40", "summary": "at 21:40", **document})
    assert struck["cause"] == "21:40"  # names and ids are kept
    assert "21:40" not in json.dumps(struck["stages"])
    assert struck["summary"] == f"at {STRUCK}"


def test_a_run_without_a_result_has_a_report(tmp_path: Path) -> None:
    with Store.open(tmp_path / "lim.duckdb") as store:
        start(store)
        put(store, *(a_trial(number) for number in range(5)))
        store.set_status("r1", "failed", "The endpoint hung up.")
        seen = Seen(html_report(store, "r1"))
        assert "No result yet" in seen.text
        assert "The endpoint hung up." in seen.text
        assert "5 trials, in the order they finished." in seen.text
        with pytest.raises(InputError, match="There is no run"):
            html_report(store, "nowhere")


def test_a_large_run_stays_under_the_cap_and_says_what_was_cut(tmp_path: Path) -> None:
    chunks = tuple(Chunk(f"c{place}", f"<{place}> " + "many words & more " * 700) for place in range(700))
    case = replace(a_case(), id="ferry", chunks=chunks, prompt=(Message("user", "x" * 3_000_000),))
    with Store.open(tmp_path / "lim.duckdb") as store:
        start(store, case=case)
        put(store, *(a_trial(number, text="<answer> " * 400) for number in range(6_000)))
        made = html_report(store, "r1")
        assert MOST_BYTES * 0.6 < len(made) < MOST_BYTES
        text = Seen(made).text
        assert "Texts are cut after" in text
        assert re.search(r"The first [\d,]+ are listed; `runs export` writes them all\.", text)


def again(report: bytes) -> list[list[str]]:
    """The arguments of each line that a report gives to make its run again."""
    said = Seen(report).text.split("From the store that holds the run:")[1].split("\n")
    return [shlex.split(line)[3:] for line in said if line.startswith("python -m lim_core ")]


def test_the_lines_to_make_a_diagnosis_again_bring_back_the_case(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIM_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    with Store.open(path) as store:
        lines = again(html_report(store, "d1"))
    assert [line[0] for line in lines] == ["runs", "import", "diagnose"]
    for line in lines[:2]:
        assert cli.main(line) == 0
    case = json.loads((tmp_path / "cases.jsonl").read_text("utf-8"))
    assert [chunk["text"] for chunk in case["chunks"]] == [chunk.text for chunk in a_case().chunks]
    assert cli.main([*lines[2], "--no-store", "--stages", "truncation,retrieval,assembly"]) == 0


@pytest.mark.parametrize("kind", PLANS)
def test_the_lines_to_make_an_experiment_again_make_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    monkeypatch.setenv("LIM_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    with Store.open(path) as store:
        lines, trials, document = again(html_report(store, kind)), store.count_trials(kind), store.document(kind)
    for line in lines[:2]:
        assert cli.main(line) == 0
    assert len((tmp_path / "cases.jsonl").read_text("utf-8").strip().split("\n")) == 6
    capsys.readouterr()
    assert cli.main([*lines[2], "--no-store", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["kind"] == kind
    assert sum(made["outcomes"].values()) == trials
    assert document is not None
    assert made["options"] == document["options"]


def test_the_command_line_writes_reports(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--store", str(path))
    file = tmp_path / "report.html"
    assert cli.main(["report", "tokens", "--html", str(file), *where]) == 0
    assert NEEDLE in file.read_text("utf-8")
    assert cli.main(["report", "tokens", "--html", str(file), "--redact", *where]) == 0
    assert NEEDLE not in file.read_text("utf-8")
    assert cli.main(["report", "nowhere", "--html", str(file), *where]) == 2
    assert cli.main(["report", "tokens", "--html", str(tmp_path / "no" / "report.html"), *where]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_text_is_shown_as_it_reads_in_every_script() -> None:
    assert text("می‌خواهم 👩‍🚀 <b>&\n\t") == "می‌خواهم 👩‍🚀 &lt;b&gt;&amp;\n\t"
    assert text("a\x00\x1b[31m\ud800\u202eb") == "a\ufffd\ufffd[31m\ufffd\ufffdb"


def test_colours_are_those_of_the_app() -> None:
    theme = tomllib.loads(Path(__file__).parents[1].joinpath(".streamlit", "config.toml").read_text("utf-8"))["theme"]
    assert list(asdict(LIGHT).values()) == theme["light"]["chartCategoricalColors"]
    assert list(asdict(DARK).values()) == theme["dark"]["chartCategoricalColors"]
    assert len(set(asdict(THEMED).values())) == 8


# --- rows of trials -----------------------------------------------------------------------------------------

FORMULAS = (
    '=HYPERLINK("http://evil.example")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "  =1",
    "＝1",
)
HARMLESS = ("-0.5", "+7", "3e-4", "a = b", "21:40", "", "'quoted", 'x,"y"\nz', "\u2028 й")


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "lim.duckdb") as store:
        start(store)
        put(store, *(a_trial(number, text=text) for number, text in enumerate((*FORMULAS, *HARMLESS))))
        yield store


def test_csv_runs_nothing_and_keeps_numbers(exported: Store, tmp_path: Path) -> None:
    file = tmp_path / "trials.csv"
    exported.export_csv("r1", file)
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["answer"] for row in rows] == [*(f"'{text}" for text in FORMULAS), *HARMLESS]
    assert {row["run_id"] for row in rows} == {"r1"}
    frame = pandas.read_csv(file, keep_default_na=False)
    assert list(frame["answer"][len(FORMULAS) :]) == list(HARMLESS)
    assert frame["prompt_tokens"].tolist() == [100 + number for number in range(len(rows))]
    assert frame["depth"].dtype == float
    trials = exported.trials("r1")
    assert list(frame["outcome"]) == [trial.outcome.value for trial in trials]


def test_json_lines_hold_what_the_store_holds(exported: Store, tmp_path: Path) -> None:
    file = tmp_path / "trials.jsonl"
    exported.export_jsonl("r1", file)
    rows = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    assert rows == [{"run_id": "r1", "model": "scripted", **asdict(trial)} for trial in exported.trials("r1")]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_command_line_exports_rows(exported: Store, tmp_path: Path, form: str) -> None:
    exported.close()
    file = tmp_path / f"out.{form}"
    where = ("--store", str(tmp_path / "lim.duckdb"))
    assert cli.main(["runs", "export", "r1", "--format", form, "--out", str(file), *where]) == 0
    assert file.read_bytes().count(b"position:first") == len(FORMULAS) + len(HARMLESS)
    assert cli.main(["runs", "export", "r1", "--format", form, "--out", str(tmp_path / "no" / "x"), *where]) == 2
    assert cli.main(["runs", "export", "r2", "--format", form, "--out", str(file), *where]) == 2
