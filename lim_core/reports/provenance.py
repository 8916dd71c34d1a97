"""Where a report comes from: the release, the settings, and the command line that makes the run again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lim_core.reports.markup import NOTHING, Html, details, element, join, line, note, section, text
from lim_core.types import Json

if TYPE_CHECKING:
    from lim_core.store.records import RunRecord

# Stored with a run as they are given on the command line, in the order of its help.
_FLAGS = (
    "model", "base_url", "judge", "alpha", "delta", "seed", "max_calls", "max_tokens", "max_cost", "in_flight",
)  # fmt: skip
_SHORT = {"requests_per_minute": "rpm", "tokens_per_minute": "tpm"}


@dataclass(frozen=True, slots=True)
class _Command:
    """The command that runs a kind of experiment, and which of its options can be given on the command line."""

    name: str
    options: tuple[str, ...]


_COMMANDS = {
    "positions": _Command("sweep", ("positions", "templates", "blocks")),
    "tokens": _Command("topk", ("k", "blocks")),
    "orderings": _Command("orderings", ("orderings", "templates", "distraction", "blocks")),
    "grid": _Command("grid", ("lengths", "depths", "threshold", "blocks")),
}
# A run without a cap on calls; the command line always has one.
_NO_CAP = 1_000_000


def release_section(release: Mapping[str, Json], settings: Mapping[str, Json]) -> Html:
    """The release identity and the settings of the run; what is unknown is said to be, what is off is left out."""
    settings = {name: value for name, value in settings.items() if value not in (None, "", (), [], {}, False)}
    # They stand at the head of the report.
    settings.pop("warnings", None)
    return section(
        "Release and settings",
        _listing(release),
        details("Settings of the run", _listing(settings)),
    )


def reproduce_section(record: RunRecord, commands: Sequence[str]) -> Html:
    """The lines to type to make the run again."""
    if not commands:
        return NOTHING
    notes = []
    if record.settings.get("keyed"):
        notes.append("The endpoint wants a key: name the variable that holds it with --api-key-env.")
    if record.settings.get("options"):
        notes.append("The model's own options, under the settings above, are set on the page Models.")
    known = _COMMANDS[record.kind].options if record.kind in _COMMANDS else ()
    unknown = [
        name.replace("_", " ") for name, value in _plan(record).items() if name not in known and value != ["plain"]
    ]
    if unknown:
        notes.append(f"Set on the page, for no command takes it: {', '.join(unknown)}.")
    lines = element("pre", text("\n".join(commands)))
    return section("Make it again", line("From the store that holds the run:"), lines, join(map(note, notes)))


def diagnosis_commands(record: RunRecord) -> tuple[str, ...]:
    """Take the case out of the store and diagnose it with the same settings."""
    chosen = record.settings.get("stages")
    stages = ["--stages", ",".join(map(str, chosen))] if isinstance(chosen, list | tuple) and chosen else []
    more = ["--all-stages"] if record.settings.get("all_stages") else []
    return (
        *_cases_out(record.id),
        _command("diagnose", "cases.jsonl", *running_flags(record.settings), *stages, *more),
    )


def experiment_commands(record: RunRecord) -> tuple[str, ...]:
    """Take the suite out of the store and run the experiment over it with the same options."""
    command, plan = _COMMANDS[record.kind], _plan(record)
    flags: list[str] = []
    for name in command.options:
        if name in plan:
            value = plan[name]
            said = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            flags += [f"--{name}", said]
    return (*_cases_out(record.id), _command(command.name, "cases.jsonl", *flags, *running_flags(record.settings)))


def _plan(record: RunRecord) -> Mapping[str, Json]:
    """The options of an experiment that are not left to lim."""
    plan = record.settings.get("plan")
    given = plan if isinstance(plan, Mapping) else {}
    return {
        name: value for name, value in given.items() if value not in (None, [], ()) and (name, value) != ("blocks", 0)
    }


def running_flags(settings: Mapping[str, Json]) -> list[str]:
    """The options that every command takes which calls a model, as this run had them."""
    flags: list[str] = []
    for name in (*_FLAGS, *_SHORT):
        value = settings.get(name)
        if value is None and name == "max_calls" and name in settings:
            value = _NO_CAP
        if value is not None:
            flags += [f"--{_SHORT.get(name, name).replace('_', '-')}", str(value)]
    return flags


def _cases_out(run_id: str) -> tuple[str, ...]:
    return (
        _command("runs", "export", run_id, "--format", "json", "--out", "run.json"),
        _command("import", "run.json", "--out", "cases.jsonl"),
    )


def _command(*parts: str) -> str:
    return f"python -m lim_core {shlex.join(parts)}"


def _listing(values: Mapping[str, Json]) -> Html:
    return element(
        "dl",
        *(
            join((element("dt", text(name.replace("_", " "))), element("dd", text(_say(value)))))
            for name, value in values.items()
        ),
    )


def _say(value: Json) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {_say(item)}" for name, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_say, value)) or "none"
    return str(value)
