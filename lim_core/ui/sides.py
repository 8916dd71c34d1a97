"""The page Orderings: rank strips, gains, the distraction test, and each case's prompts and answers side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from lim_core import arms
from lim_core.drawing.arrangements import accuracies, accuracy_rows, gain_rows, gains
from lim_core.drawing.rank_strip import BY_CHUNKS, rank_rows, rank_strip
from lim_core.drawing.words import OUTCOME_SHAPES, arm_words, clip, interval, points
from lim_core.errors import InputError, LimError
from lim_core.evidence import gold_of
from lim_core.experiments.arrangements import BASELINE, BY_HAND, OrderingResult, arrangement, expected_gain
from lim_core.experiments.cells import matrix
from lim_core.experiments.positions import slot_arms
from lim_core.experiments.subjects import PLAIN
from lim_core.orderings import orderings
from lim_core.runs import ExperimentView, load_experiment
from lim_core.store.records import TrialRow
from lim_core.types import Case
from lim_core.ui import shell, views
from lim_core.ui.curves import pick_templates
from lim_core.ui.experiment_run import label_of
from lim_core.ui.experiment_start import Plan, new_experiment, pick_blocks
from lim_core.ui.suites import Suite

_MOST_ARMS = 6


def start() -> None:
    """The form of a new comparison, with what each ordering does to the ranks before any call."""
    new_experiment("orderings", _options)


def draw(view: ExperimentView, others: tuple[ExperimentView, ...]) -> str | None:
    """Gains and accuracies, the ranks, what a measured curve would have foretold, one case side by side."""
    for place, one in enumerate((view, *others)):
        if others:
            st.subheader(views.escape(label_of(one)), anchor=False)
        result: OrderingResult = one.result
        left, right = st.columns(2, gap="medium")
        with left:
            st.subheader("Paired gain over the order as retrieved", anchor=False)
            views.chart(gains(result), gain_rows(result), key=f"gains-{place}")
            views.note("Bars: 95% intervals. Named as better only where the gain holds after Holm.")
        with right:
            st.subheader("Right answers", anchor=False)
            views.chart(accuracies(result), accuracy_rows(result), key=f"accuracies-{place}")
    cases = {case.id: case for case in shell.store().suite(view.run.id)}
    names = list(view.options.orderings)
    _ranks(names, _usual(tuple(cases.values())))
    _foretold(view, names)
    _side_by_side(view, cases)
    return None


def _options(suite: Suite) -> Plan:
    known = [entry.name for entry in orderings]
    picked = st.multiselect(
        "Orderings",
        [name for name in known if name != BASELINE],
        default=["edges", "reverse", "langchain"],
        format_func=lambda name: orderings[name].title if name in orderings else name,
        key="sides-orderings",
        persist_state="session",
        max_selections=_MOST_ARMS - 1,
        help="The order as retrieved always takes part: the others are compared with it.",
    )
    templates = pick_templates("sides-templates")
    hand = _by_hand(suite.cases[0], suite.digest[:12]) if len(suite.cases) == 1 else ()
    names = [BASELINE, *(name for name in picked if name in known), *([BY_HAND] if hand else [])]
    if len(names) * len(templates) > _MOST_ARMS:
        raise InputError(
            f"{len(names)} orderings in {len(templates)} templates are {len(names) * len(templates)} arms: "
            f"choose {_MOST_ARMS} or fewer."
        )
    taken = st.number_input(
        "Distractors that the distraction test takes away",
        0,
        10,
        3,
        key="sides-distraction",
        persist_state="session",
        help="The best-ranked against as many of the worst-ranked: the same volume, less lure. 0: no test.",
    )
    blocks = pick_blocks("orderings", suite)
    _ranks(names, _usual(suite.cases))
    return {
        "orderings": names,
        "templates": templates,
        "by_hand": list(hand),
        "distraction": int(taken),
        "blocks": blocks,
    }


def _by_hand(case: Case, digest: str) -> tuple[str, ...]:
    """An order of the user's own for a single case: chunks are moved one at a time."""
    if not st.toggle("An order by hand too", key="hand-on", persist_state="session"):
        return ()
    key = f"hand-{digest}-{case.id}"
    ids = [chunk.id for chunk in case.chunks]
    order: list[str] = st.session_state.get(key) or ids
    if sorted(order) != sorted(ids):
        order = ids
    titles = {chunk.id: clip(f"{chunk.title} {chunk.text}", 60) for chunk in case.chunks}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        moved = st.selectbox(
            "Move chunk",
            order,
            format_func=lambda one: f"{order.index(one) + 1}. {titles.get(one, '')}",
            key=f"{key}-what",
        )
        target = st.number_input("to slot", 1, len(order), 1, key=f"{key}-to", width=120)
        if st.button("Move", key=f"{key}-go") and moved in order:
            order = [one for one in order if one != moved]
            order.insert(int(target) - 1, moved)
            st.session_state[key] = order
            st.rerun()
    rows: list[views.Row] = [
        {"slot": slot + 1, "rank": ids.index(one) + 1, "chunk": one, "text": titles[one]}
        for slot, one in enumerate(order)
    ]
    views.table(rows, alt="The order by hand")
    return tuple(order)


def _usual(cases: Sequence[Case]) -> int:
    """The commonest number of chunks, the larger one of two that are as common."""
    counted = Counter(len(case.chunks) for case in cases)
    return max(counted, key=lambda n: (counted[n], n)) if counted else 0


def _ranks(names: Sequence[str], n: int) -> None:
    # A random order differs with every case and seed.
    shown = [name for name in names if name not in (BY_HAND, "random")]
    if not n or not shown:
        return
    st.subheader("Which rank lands in which slot", anchor=False)
    views.chart(rank_strip(shown, n), rank_rows(shown, n), key=f"ranks-{n}-{'-'.join(shown)}")
    said = f"For {n} chunks, as most cases have."
    if "langchain" in shown:
        best = "last" if n % 2 == 0 else "first"
        said += f" LongContextReorder puts the best chunk {best} here: last for an even number of chunks, first for an odd one."
    views.note(said)


def _foretold(view: ExperimentView, names: Sequence[str]) -> None:
    """What a measured position curve says that each ordering should gain, before any call of this comparison."""
    table = view.table
    # The same model's curves only: another model's says nothing of this one.
    rows = {row.id: row for row in shell.store().runs(limit=20, kind="positions", model=view.run.model).rows}
    by_rank = [name for name in names if name not in BY_CHUNKS and name not in (BASELINE, "random")]
    if view.run.model is None or not rows or not by_rank or not table.facts:
        return
    st.subheader("Expected gain from a measured curve", anchor=False)
    picked = st.selectbox(
        "Position curve",
        list(rows),
        format_func=lambda one: (
            f"{clip(rows[one].question, 50)} · {rows[one].created_at:%m-%d %H:%M} · {one}" if one in rows else str(one)
        ),
        key="foretold-run",
        width=420,
    )
    if picked not in rows:
        return
    try:
        curve = load_experiment(shell.store(), picked)
    except LimError as error:
        views.note(str(error))
        return
    if curve.caution:
        views.note(f"The curve: {curve.caution}")
    slots = slot_arms(curve.table, PLAIN)
    shares = [arms.NAMED_SLOTS.get(name.removeprefix("position:")) for name in slots]
    known = [(arm, share) for arm, share in zip(slots, shares, strict=True) if share is not None]
    if len(known) < 2 or len(curve.table.facts) < 2:
        views.note("This curve has too few named slots or cases to foretell from.")
        return
    answers = matrix(curve.table, [arm for arm, _ in known])
    found: list[views.Row] = []
    for name in by_rank:
        try:
            gain = expected_gain(answers, [share for _, share in known], table, name).gain
        except ValueError:
            continue
        found.append(
            {
                "ordering": orderings[name].title,
                "expected gain": points(gain.value),
                "95% interval": interval(gain.low, gain.high, "pts"),
                "n, cases": gain.n,
            }
        )
    views.table(found, alt="Expected gain of each ordering from the measured curve")
    views.note(
        "Sum over ranks of how often the gold has the rank, times the curve at its new slot minus at its old one."
    )


def _side_by_side(view: ExperimentView, cases: dict[str, Case]) -> None:
    st.subheader("One case side by side", anchor=False)
    if not cases:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = st.selectbox("Case", list(cases), key="case", bind="query-params", width=420)
    case = cases[picked] if picked in cases else next(iter(cases.values()))
    views.line(f"{case.question}  Right: {', '.join(case.answers)}")
    trials = {row.arm: row for row in shell.store().trials(view.run.id, case=case.id, limit=200) if row.block == 0}
    found: list[views.Row] = [
        {
            "arm": arm_words(arm),
            "outcome": OUTCOME_SHAPES.get(row.outcome, row.outcome),
            "answer": clip(row.answer, 300),
            "slot of the gold": None if row.slot is None else row.slot + 1,
            "prompt tokens": row.prompt_tokens,
        }
        for arm, row in trials.items()
    ]
    views.table(found, alt="Answers of this case, an arm each")
    gold = set(gold_of(case).ids)
    rank = {chunk.id: place + 1 for place, chunk in enumerate(case.chunks)}
    orders = {
        name: arrangement(case.chunks, name, view.options.by_hand, view.levels.seed) for name in view.options.orderings
    }
    rows: list[views.Row] = []
    for slot, base in enumerate(case.chunks):
        row: dict[str, str | int] = {"slot": slot + 1}
        for name, chunks in orders.items():
            chunk = chunks[slot]
            # The marks stand beside colour-free text, so that a copied table keeps them.
            moved = "" if chunk.id == base.id else "≠ "
            row[name] = f"{moved}{'★ ' if chunk.id in gold else ''}rank {rank[chunk.id]}, {clip(chunk.text, 40)}"
        rows.append(row)
    views.note("≠: another chunk than as retrieved; ★: gold.")
    views.table(rows, alt="Chunks by slot under each ordering")
    _exact(trials)


def _exact(known: dict[str, TrialRow]) -> None:
    if len(known) < 2 or not st.toggle("Exact prompts of two arms", key="exact"):
        return
    names = list(known)
    sides = st.columns(2, gap="medium")
    texts: list[list[str]] = []
    for place, side in enumerate(sides):
        with side:
            arm = st.selectbox(
                ("Left", "Right")[place], names, index=place, format_func=arm_words, key=f"exact-{place}"
            )
            row = known.get(arm) or known[names[place]]
            messages = shell.store().prompt(row.call_id)
            texts.append("\n".join(message.content for message in messages).splitlines())
    for place, side in enumerate(sides):
        other = texts[1 - place]
        marked = [
            f"{' ' if number < len(other) and other[number] == text else '≠'} {text}"
            for number, text in enumerate(texts[place])
        ]
        with side:
            views.block("\n".join(marked), height=480)
    views.note("≠: the line differs from the other prompt's line at this place.")
