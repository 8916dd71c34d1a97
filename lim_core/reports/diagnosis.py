"""A diagnosis as the body of a report, most important first, as on its page: verdict, stages, charts, remedies."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.drawing.diagnosis import position_chart, remedy_chart
from lim_core.drawing.fixes import code_for
from lim_core.drawing.prompt_strip import strip_chart
from lim_core.drawing.reading import Reading, RemedyRow, read_document
from lim_core.drawing.rows import assembly_rows, conflict_lines, evidence_rows, position_rows, remedy_rows
from lim_core.drawing.verdict import also_line, cause_status, headline, rests_on, shape_line
from lim_core.drawing.words import SIGNS, stage_words
from lim_core.reports.markup import NOTHING, Html, details, element, figure, join, line, note, section, table, text
from lim_core.types import Json, Status

# Their evidence stands below the charts.
_DRAWN = ("assembly", "position")


def diagnosis_body(document: Mapping[str, Json]) -> Html:
    """Everything that the document of a diagnosis holds."""
    reading = read_document(document)
    return join((_verdict(reading), section("Stages", *_stages(reading)), _pictures(reading), _remedies(reading)))


def _verdict(reading: Reading) -> Html:
    said = headline(reading)
    return element(
        "div",
        element("h1", _sign(cause_status(reading.cause)), text(f" {said.title}")),
        line(said.text),
        note(f"{reading.cause} · rests on {rests_on(reading)}"),
        note(also_line(reading)) if reading.also else NOTHING,
        join(note(f"Note: {warning}") for warning in reading.warnings),
        klass="verdict",
    )


def _sign(status: Status, word: bool = False) -> Html:
    look = SIGNS[status]
    return element("span", text(f"{look.shape} {look.word}" if word else look.shape), klass=f"word {status.value}")


def _stages(reading: Reading) -> tuple[Html, ...]:
    if not reading.stages:
        return ()
    head = join(Html(f'<th scope="col">{name}</th>') for name in ("stage", "finding", "what it saw", "next"))
    rows = []
    for row in reading.stages:
        lacks = f"Would say more with: {', '.join(row.missing_fields)}." if row.missing_fields else ""
        cells = (
            text(stage_words(row.stage)),
            _sign(row.status, word=True),
            join((text(row.summary or "Nothing was said."), note(lacks))),
            text(row.advice),
        )
        rows.append(element("tr", *(element("td", cell) for cell in cells)))
    listing = element("table", element("thead", element("tr", head)), element("tbody", *rows))
    evidence = (_evidence(row.stage, reading) for row in reading.stages if row.stage not in _DRAWN)
    return (element("div", listing, klass="wide stages", tabindex="0", role="region", aria_label="Stages"), *evidence)


def _evidence(stage: str, reading: Reading) -> Html:
    row = reading.stage(stage)
    rows = [] if row is None else evidence_rows(row, reading)
    if row is None or not rows:
        return NOTHING
    name = f"Evidence: {stage_words(stage)}"
    return details(name, table(rows, name), join(note(conflict) for conflict in conflict_lines(row.evidence)))


def _pictures(reading: Reading) -> Html:
    position, assembly = reading.position, reading.assembly
    parts = []
    if position is not None and position.points:
        slots = max(((point.index or 0) + 1 for point in position.points), default=1)
        drawn = figure(position_chart(position, slots), position_rows(reading), "Answers by slot", shape_line(position))
        parts.append(section("Answers by slot of the evidence", drawn))
    if assembly is not None:
        said = "Numbers are ranks in the retrieved list; widths are tokens."
        parts.append(
            section("The prompt as sent", figure(strip_chart(assembly), assembly_rows(reading), "Chunks", said))
        )
    return join(parts)


def _remedies(reading: Reading) -> Html:
    rows = remedy_rows(reading)
    codes = join(_code(row) for row in reading.remedies)
    if not any(row.tried for row in reading.remedies):
        return section("Remedies", table(rows, "Remedies, none of them tried"), codes)
    drawn = figure(remedy_chart(reading.remedies), rows, "Remedies, before and after")
    return section("Remedies", drawn, codes)


def _code(row: RemedyRow) -> Html:
    fixes = code_for(row.name)
    if not fixes:
        return NOTHING
    untried = NOTHING if row.tried else note("Not tried on this case: measure it before you ship it.")
    shown = (join((element("h3", text(fix.title)), element("pre", text(fix.code)))) for fix in fixes)
    return details(f"Use it: {row.title}", untried, *shown)
