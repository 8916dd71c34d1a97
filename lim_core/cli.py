"""The command line: parses, calls a plain function, prints. The contract is design section 8 of the README's links."""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from lim_core import cases, runs
from lim_core.backends import spec_for
from lim_core.config import Settings, UrlSource
from lim_core.errors import ConfigError, InputError, LimError, StoreBusy, StoreError
from lim_core.importers import import_file, importers, report_text
from lim_core.judges import judges
from lim_core.orderings import orderings
from lim_core.stages import stages
from lim_core.store import Store
from lim_core.summary import experiment_lines, five_lines, plain_line
from lim_core.types import Json, Progress

INTERNAL = 70
INTERRUPTED = 130
# Where a model's name is given without an address.
OPENAI_URL = "https://api.openai.com/v1"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (0 done, 2 input or configuration, 3 endpoint, 70 internal, 130 interrupted)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # JSON is UTF-8 whatever the locale, and no question may fail to be printed.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        return code
    except LimError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("Interrupted; what was finished is kept.", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away; nothing is left to tell it.
        _drop_output()
        return 0
    except Exception as error:  # noqa: BLE001 - the contract: one line and exit 70, never a traceback
        return _fail(f"Internal error ({type(error).__name__}); please report it.", INTERNAL)


def _fail(message: str, code: int) -> int:
    print(f"lim: {plain_line(message, 600)}", file=sys.stderr)  # noqa: T201
    return code


def _out(text: str) -> None:
    """Print a result; where standard output is closed there is nobody to tell."""
    try:
        print(text, flush=True)  # noqa: T201
    except BrokenPipeError:
        raise
    except OSError as error:
        _drop_output()
        raise ConfigError(
            f"Standard output cannot be written ({error.strerror or error}): send it elsewhere; what was stored is kept."
        ) from error


def _drop_output() -> None:
    """Keep the interpreter from writing what is left in the buffer when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(text: str) -> None:
    print(plain_line(text, 400), file=sys.stderr)  # noqa: T201


# --- diagnose -----------------------------------------------------------------------------------------


def _diagnose(arguments: argparse.Namespace) -> int:
    data, name = _read(arguments.case)
    loaded = cases.read_case(data, name)
    cases.check_ready(loaded.case)
    for warning in loaded.warnings:
        _say(f"warning: {warning}")
    settings = _settings(arguments)
    key = _key(arguments, settings.base_url)
    run_id = runs.new_run_id()
    with ExitStack() as stack:
        store = _open_store(arguments, stack, run_id)
        outcome = runs.run_diagnosis(
            loaded.case,
            settings,
            store=store,
            run_id=run_id,
            key=key,
            warnings=loaded.warnings,
            report=_progress(),
            cancelled=_until_interrupted(),
            use_cache=not arguments.no_cache,
        )
    return _finish(outcome, arguments.json)


def _finish(outcome: runs.RunOutcome, as_json: bool) -> int:
    _out(to_json(outcome.document) if as_json else _told(outcome.document))
    if outcome.stopped is not None:
        _fail(str(outcome.stopped), outcome.exit_code)
    return outcome.exit_code


def _told(document: Mapping[str, Json]) -> str:
    return five_lines(document) if "cause" in document else experiment_lines(document)


def _read(path: str) -> tuple[bytes, str]:
    """The bytes of a file or of standard input, one byte past the cap at most, so that no huge file fills the memory."""
    try:
        if path == "-":
            if sys.stdin is None:
                raise InputError("Standard input is closed: name a case file.")
            return sys.stdin.buffer.read(cases.MAX_BYTES + 1), "standard input"
        with Path(path).open("rb") as file:
            return file.read(cases.MAX_BYTES + 1), path
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read ({reason}): name a case file, or - for standard input.") from error


def _settings(arguments: argparse.Namespace) -> runs.RunSettings:
    environment = Settings.from_environment()
    base_url = arguments.base_url
    model = arguments.model or environment.model
    if model is None or model == runs.EMBEDDED:
        if base_url is not None or (model is None and environment.base_url is not None):
            raise ConfigError("An endpoint is given but no model: name the model with --model or LIM_MODEL.")
        model = runs.EMBEDDED
    elif base_url is None and spec_for(model).backend == "openai-compat":
        base_url = environment.base_url or OPENAI_URL
    return runs.RunSettings(
        model=model,
        base_url=base_url,
        judge=arguments.judge,
        alpha=arguments.alpha,
        delta=arguments.delta,
        seed=arguments.seed,
        max_calls=arguments.max_calls,
        max_tokens=arguments.max_tokens,
        max_cost=arguments.max_cost,
        in_flight=arguments.in_flight,
        requests_per_minute=arguments.rpm,
        tokens_per_minute=arguments.tpm,
        stages=_names(getattr(arguments, "stages", None)),
        all_stages=getattr(arguments, "all_stages", False),
    )


def _names(listed: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in listed.split(",")) if listed else None


def _key(arguments: argparse.Namespace, base_url: str | None) -> str | None:
    # Only an address typed on this very command line may get a key that names no origin of its own.
    typed = getattr(arguments, "base_url", None) is not None
    source = UrlSource.COMMAND_LINE if typed else UrlSource.ENVIRONMENT
    return Settings.from_environment().key_for(base_url, source, name=arguments.api_key_env)


def _open_store(arguments: argparse.Namespace, stack: ExitStack, run_id: str) -> Store | None:
    """The store named, or the default one; where the default is held, an inbox file beside it that its owner takes in."""
    if arguments.no_store:
        return None
    if arguments.store is not None:
        return stack.enter_context(Store.open(Path(arguments.store)))
    path = Settings.from_environment().store_path
    try:
        return stack.enter_context(Store.open(path))
    except StoreBusy as busy:
        holder = f"process {busy.pid}" if busy.pid is not None else "another process"
        _say(f"The store is held by {holder}: this run goes to its inbox as {run_id} and appears there.")
        return stack.enter_context(Store.open_inbox(run_id, beside=path))


# --- experiments --------------------------------------------------------------------------------------


def _experiment(arguments: argparse.Namespace) -> int:
    """Run the experiment that the command names over a suite."""
    data, name = _read(arguments.suite)
    suite = cases.read_suite(data, name)
    for warning in suite.warnings:
        _say(f"warning: {warning}")
    plan = {key: value for key in arguments.plan if (value := getattr(arguments, key)) is not None}
    settings = replace(_settings(arguments), plan=plan, warnings=suite.warnings)
    key = _key(arguments, settings.base_url)
    planned = runs.preflight_experiment(arguments.kind, suite.cases, settings)
    if settings.max_calls is not None and planned.calls_high > settings.max_calls:
        _say(f"The plan has {planned.calls_high} trials and the cap is {settings.max_calls} calls: see --max-calls.")
    for note in planned.notes:
        _say(note)
    run_id = runs.new_run_id()
    with ExitStack() as stack:
        store = _open_store(arguments, stack, run_id)
        outcome = runs.run_experiment(
            arguments.kind,
            "standard input" if name == "standard input" else Path(name).stem,
            suite.cases,
            settings,
            store=store,
            run_id=run_id,
            key=key,
            report=_progress(),
            cancelled=_until_interrupted(),
            use_cache=not arguments.no_cache,
        )
    return _finish(outcome, arguments.json)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in _listed(text)]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers, such as 1,2,5") from None


# --- import -------------------------------------------------------------------------------------------


def _import(arguments: argparse.Namespace) -> int:
    data, name = _read(arguments.file)
    imported = import_file(data, name, arguments.format)
    lines = [to_json(cases.case_to_json(case)) for case in imported.cases]
    report = report_text(imported.report)
    if arguments.out is None:
        for line in lines:
            _out(line)
        for line in report.splitlines():
            _say(line)
    else:
        try:
            Path(arguments.out).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"{arguments.out} cannot be written ({error.strerror or error}): name another file."
            ) from error
        _out("\n".join(plain_line(line, 400) for line in report.splitlines()))
    return 0 if lines else 2


# --- runs ---------------------------------------------------------------------------------------------


def _runs_list(arguments: argparse.Namespace) -> int:
    if arguments.limit < 1:
        raise InputError(f"limit is {arguments.limit}: give a whole number above 0.")
    with _existing_store(arguments) as store:
        page = store.runs(limit=arguments.limit, offset=0)
    if arguments.json:
        rows: list[Json] = [_run_json(row) for row in page.rows]
        _out(to_json({"runs": rows, "total": page.total}))
        return 0
    for row in page.rows:
        made = row.created_at.isoformat(timespec="seconds")
        _out(f"{row.id}  {made}  {row.status:<11}  {row.cause or '-':<20}  {plain_line(row.question, 60)}")
    return 0


def _runs_show(arguments: argparse.Namespace) -> int:
    with _existing_store(arguments) as store:
        _known(store, arguments.id)
        document = store.document(arguments.id)
        record = store.run(arguments.id)
    if document is None:
        status = record.status if record is not None else "unknown"
        raise InputError(f"Run {arguments.id} has no result yet (status {status}): continue it with `runs resume`.")
    _out(to_json(document) if arguments.json else _told(document))
    return 0


def _runs_export(arguments: argparse.Namespace) -> int:
    with _existing_store(arguments) as store:
        _known(store, arguments.id)
        path = Path(arguments.out)
        try:
            if arguments.format == "json":
                path.write_text(store.export_json(arguments.id) + "\n", encoding="utf-8")
            else:
                writers = {"parquet": store.export_parquet, "csv": store.export_csv, "jsonl": store.export_jsonl}
                writers[arguments.format](arguments.id, path)
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror or error}): name another file.") from error
    return 0


def _report(arguments: argparse.Namespace) -> int:
    from lim_core.reports import html_report

    with _existing_store(arguments) as store:
        made = html_report(store, arguments.id, redact=arguments.redact)
    try:
        Path(arguments.html).write_bytes(made)
    except OSError as error:
        raise InputError(
            f"{arguments.html} cannot be written ({error.strerror or error}): name another file."
        ) from error
    return 0


def _runs_delete(arguments: argparse.Namespace) -> int:
    if (arguments.id is None) == (arguments.older_than is None):
        raise InputError("Name one run to delete, or --older-than DAYS.")
    with _existing_store(arguments) as store:
        if arguments.id is not None:
            _known(store, arguments.id)
            store.delete(arguments.id)
        else:
            _out(str(store.delete_older_than(arguments.older_than)))
    return 0


def _runs_resume(arguments: argparse.Namespace) -> int:
    with _existing_store(arguments) as store:
        _known(store, arguments.id)
        settings = runs.RunSettings.from_json(store.settings(arguments.id))
        outcome = runs.resume_run(
            store,
            arguments.id,
            key=_key(arguments, settings.base_url),
            max_calls=arguments.max_calls,
            report=_progress(),
            cancelled=_until_interrupted(),
        )
    return _finish(outcome, arguments.json)


def _runs_rejudge(arguments: argparse.Namespace) -> int:
    with _existing_store(arguments) as store:
        _out(to_json(runs.rejudge(store, arguments.id, arguments.judge)))
    return 0


def _known(store: Store, run_id: str) -> None:
    if store.run(run_id) is None:
        raise InputError(f"There is no run {run_id} in this store: list them with `runs list`.")


def _existing_store(arguments: argparse.Namespace) -> Store:
    """The store for reading or resuming. Who opens it owns it: runs cut off are marked so, the inbox's are taken in.

    Raises:
        InputError: the store named does not exist; only a run makes one.
    """
    if arguments.store is not None and not os.path.exists(arguments.store):
        raise InputError(f"There is no store {arguments.store}: name the file that the runs were stored in.")
    store = Store.open(Path(arguments.store) if arguments.store is not None else Settings.from_environment().store_path)
    # On a full disk what was committed can still be read.
    with suppress(StoreError):
        store.mark_interrupted()
        if arguments.store is None:
            store.take_in()
    return store


def _run_json(row: object) -> dict[str, Json]:
    names = ("id", "kind", "case_id", "question", "status", "cause", "summary", "model", "calls", "seconds")
    made = getattr(row, "created_at", None)
    return {
        **{name: getattr(row, name) for name in names},
        "created_at": made.isoformat() if made is not None else None,
    }


# --- models -------------------------------------------------------------------------------------------


def _models_test(arguments: argparse.Namespace) -> int:
    from lim_core.backends.probe import test_connection

    settings = _settings(arguments)
    probe = test_connection(settings.spec, _key(arguments, settings.base_url))
    if arguments.json:
        _out(to_json(probe.to_json()))
    else:
        for line in probe.lines():
            _out(plain_line(line, 300))
    return probe.exit_code


# --- shared -------------------------------------------------------------------------------------------


def to_json(document: Mapping[str, Json]) -> str:
    """Strict JSON, one object: no NaN, no Infinity."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _progress() -> Callable[[Progress], None]:
    """Progress on stderr: on a terminal one line that is overwritten, else a line a stage."""
    last = [""]
    live = sys.stderr.isatty()

    def show(progress: Progress) -> None:
        if live:
            left = f", about {progress.seconds_left:.0f} s left" if progress.seconds_left is not None else ""
            text = f"{progress.stage}: {progress.calls}/{progress.planned} calls, {progress.prompt_tokens} tokens{left}"
            sys.stderr.write(f"\r\x1b[K{plain_line(text, 100)}")
            sys.stderr.flush()
        elif progress.stage != last[0]:
            _say(progress.stage)
        last[0] = progress.stage

    return show


def _until_interrupted() -> Callable[[], bool]:
    """True once Ctrl-C or a termination signal came; a second one ends the process at once."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        _say("Stopping; what was finished is kept.")

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, ask)
        signal.signal(signal.SIGTERM, ask)
    return asked.is_set


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one line, as every other error is said."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"lim: {plain_line(message, 300)}: see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m lim_core", description="Finds the first stage that lost an answer.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    diagnose = commands.add_parser("diagnose", help="diagnose one case file")
    diagnose.add_argument("case", metavar="CASE", help="a case file in JSON, or - for standard input")
    known = ",".join(entry.name for entry in stages)
    diagnose.add_argument("--stages", help=f"only these stages, comma-separated, of {known}")
    diagnose.add_argument("--all-stages", action="store_true", help="run stages that cost calls even when not needed")
    _running(diagnose)
    diagnose.set_defaults(command=_diagnose)

    _experiment_parsers(commands)

    importing = commands.add_parser("import", help="turn a trace, an export or a dump into case files")
    importing.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    known_shapes = ", ".join(entry.name for entry in importers)
    importing.add_argument("--format", default="auto", help=f"auto, or one of {known_shapes}")
    importing.add_argument("--out", metavar="CASES.jsonl", help="write the cases there and print the report")
    importing.set_defaults(command=_import)

    run = commands.add_parser("runs", help="list, show, export, delete or resume stored runs")
    acts = run.add_subparsers(required=True, metavar="ACTION")
    listing = acts.add_parser("list", help="the stored runs, newest first")
    listing.add_argument("--limit", type=int, default=50)
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(command=_runs_list)
    show = acts.add_parser("show", help="one run's result")
    show.add_argument("id")
    show.add_argument("--json", action="store_true")
    show.set_defaults(command=_runs_show)
    export = acts.add_parser("export", help="one run to a file")
    export.add_argument("id")
    export.add_argument("--format", choices=("json", "parquet", "csv", "jsonl"), default="json")
    export.add_argument("--out", required=True, metavar="FILE")
    export.set_defaults(command=_runs_export)
    delete = acts.add_parser("delete", help="one run, or all older than some days")
    delete.add_argument("id", nargs="?")
    delete.add_argument("--older-than", type=float, metavar="DAYS")
    delete.set_defaults(command=_runs_delete)
    resume = acts.add_parser("resume", help="go on with an interrupted run, paying for nothing twice")
    resume.add_argument("id")
    resume.add_argument("--api-key-env", metavar="NAME")
    resume.add_argument("--max-calls", type=int, help="a new cap on HTTP requests; caps count from here on")
    resume.add_argument("--json", action="store_true")
    resume.set_defaults(command=_runs_resume)
    rejudge = acts.add_parser("rejudge", help="score stored answers with another judge, at no calls")
    rejudge.add_argument("id")
    rejudge.add_argument("--judge", required=True, help=f"one of {', '.join(entry.name for entry in judges)}")
    rejudge.set_defaults(command=_runs_rejudge)
    for part in (listing, show, export, delete, resume, rejudge):
        part.add_argument("--store", metavar="FILE")

    report = commands.add_parser("report", help="one run as one HTML file that opens without a network")
    report.add_argument("id", metavar="RUN")
    report.add_argument("--html", required=True, metavar="FILE")
    report.add_argument("--redact", action="store_true", help="leave out questions, answers, chunk texts and prompts")
    report.add_argument("--store", metavar="FILE")
    report.set_defaults(command=_report)

    models = commands.add_parser("models", help="test the connection to a model")
    model_acts = models.add_subparsers(required=True, metavar="ACTION")
    test = model_acts.add_parser("test", help="final URL, model list, one timed call, what is reported")
    _running(test)
    test.set_defaults(command=_models_test)
    return parser


def _experiment_parsers(commands: argparse._SubParsersAction[_Parser]) -> None:
    templates = "template options to compare, such as plain,question-twice"

    def add(name: str, kind: str, says: str, plan: Sequence[str]) -> _Parser:
        made = commands.add_parser(name, help=says)
        made.add_argument("suite", metavar="SUITE", help="cases as JSON lines, or - for standard input")
        made.add_argument("--blocks", type=int, help="distractor orders a case; default 1, or 8 for a single case")
        _running(made)
        made.set_defaults(command=_experiment, kind=kind, plan=("blocks", *plan))
        return made

    sweep = add("sweep", "positions", "accuracy by position of the gold chunk", ("positions", "templates"))
    sweep.add_argument("--positions", type=_listed, help="first,q1,middle,q3,last, or all, or slot numbers from 0")
    sweep.add_argument("--templates", type=_listed, help=templates)
    orders = add("orderings", "orderings", "orderings side by side", ("orderings", "templates", "distraction"))
    orders.add_argument("--orderings", type=_listed, help=f"of {','.join(entry.name for entry in orderings)}")
    orders.add_argument("--templates", type=_listed, help=templates)
    orders.add_argument("--distraction", type=int, help="distractors that the distraction test takes away; 0: no test")
    topk = add("topk", "tokens", "accuracy against prompt tokens", ("k",))
    topk.add_argument("--k", type=_numbers, help="cuts of the retrieved list, such as 1,2,5,10")
    grid = add("grid", "grid", "length of the prompt by position of the gold chunk", ("lengths", "depths", "threshold"))
    grid.add_argument("--lengths", type=_numbers, help="prompt lengths in tokens, such as 500,1000,2000")
    grid.add_argument("--depths", type=int, help="how many evenly spaced depths")
    grid.add_argument("--threshold", type=float, help="accuracy that the worst depth must keep")


def _running(parser: argparse.ArgumentParser) -> None:
    """The options of every command that may call a model."""
    parser.add_argument("--model", help="embedded (default), or a model's name at the endpoint; also LIM_MODEL")
    parser.add_argument(
        "--base-url", help="OpenAI-compatible endpoint, such as http://localhost:8000/v1; also LIM_BASE_URL"
    )
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable that holds the endpoint's key")
    parser.add_argument("--judge", default="contains", help=f"one of {', '.join(entry.name for entry in judges)}")
    parser.add_argument("--alpha", type=float, default=0.05, help="error rate of the position test")
    parser.add_argument("--delta", type=float, default=0.2, help="the smallest gap that matters")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-calls", type=int, default=200, help="cap on HTTP requests, retries included")
    parser.add_argument("--max-tokens", type=int, help="cap on prompt and completion tokens")
    parser.add_argument("--max-cost", type=float, help="cap on money, in the price table's currency")
    parser.add_argument("--in-flight", type=int, help="requests at once; default: what the model works on at once")
    parser.add_argument("--rpm", type=int, help="requests per minute at most")
    parser.add_argument("--tpm", type=int, help="prompt tokens per minute at most")
    parser.add_argument("--no-cache", action="store_true", help="send equal calls of this run anew too")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--store", metavar="FILE", help="the store file; default LIM_STORE or the user's data folder")
    where.add_argument("--no-store", action="store_true", help="keep nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
