"""Two documents that contradict each other on what was asked, and many that merely look like it."""

from __future__ import annotations

import pytest

from lim_core.evidence.conflicts import Conflict, find_conflicts, told_other_value
from lim_core.text.values import Kind, document_date, later_of, values
from lim_core.types import Case, Chunk

FEE = "What is the fee for a market stall permit?"
GOLD = Chunk("gold", "The fee for a market stall permit is 45 euros per day. It is paid at counter 4.")


def _conflicts(
    question: str, answers: tuple[str, ...], gold: Chunk, *others: Chunk, answer: str | None = None
) -> tuple[Conflict, ...]:
    case = Case("k", question, (gold, *others), answers, answer=answer)
    return find_conflicts(case, [gold])


RIVALS = [
    (FEE, ("45 euros",), GOLD.text, "The fee for a market stall permit is 40 euros per day.", "40 euros"),
    (FEE, ("45",), GOLD.text, "Until 2023 the fee for a market stall permit was 40 euros.", "40 euros"),
    (FEE, ("45 euros", "€45"), GOLD.text, "Tariff 2021. Market stall permit: the fee is set at €38 a day.", "€38"),
    (
        "How many days of leave do carers get?",
        ("12 days",),
        "Carers get 12 days of paid leave a year.",
        "Carers get ten days of paid leave a year. Ask the personnel desk.",
        "ten days",
    ),
    (
        "When does the tool library open?",
        ("9:30",),
        "The tool library opens at 9:30 on Thursdays.",
        "On Thursdays the tool library opens at 10:15.",
        "10:15",
    ),
    (
        "By what date must the garden lease be renewed?",
        ("15 March",),
        "The garden lease must be renewed by 15 March of each year.",
        "The garden lease must be renewed by 1 April of each year.",
        "1 April",
    ),
    (
        "Who is the head of the parks office?",
        ("Anna Brandt",),
        "The head of the parks office is Anna Brandt.",
        "The head of the parks office is Karl Weiss.",
        "Karl Weiss",
    ),
    (
        "In which room is the lost property office?",
        ("214",),
        "The lost property office is in room 214.",
        "The lost property office is in room 118.",
        "118",
    ),
    (
        "How high is the late charge of the library, in percent?",
        ("5%",),
        "The late charge of the library is 5% of the price.",
        "The late charge of the library is 8 percent of the price.",
        "8 percent",
    ),
    (
        "街头集市的许可费用是多少？",
        ("45元",),
        "街头集市的许可费用是45元。",
        "街头集市的许可费用是38元。",
        "38元",
    ),
]


@pytest.mark.parametrize(("question", "answers", "right", "rival", "value"), RIVALS)
def test_another_value_for_the_same_thing(
    question: str, answers: tuple[str, ...], right: str, rival: str, value: str
) -> None:
    found = _conflicts(
        question, answers, Chunk("gold", right), Chunk("x", "Bins are emptied on Mondays."), Chunk("old", rival)
    )
    assert [(c.right_id, c.other_id) for c in found] == [("gold", "old")]
    assert value in found[0].other or found[0].other in value


# Other permits, rooms, hours, people: what a retriever brings along with the right chunk.
HARMLESS = [
    "The fee for a street music permit is 30 euros per day.",
    "The fee for a fishing permit is 25 euros per year.",
    "A permit for a flea market costs 20 euros.",
    "A market stall may be 3 metres wide.",
    "The fee for a market stall permit for charities is 20 euros per day.",
    "The fee for a market stall permit on Sundays is 60 euros.",
    "The fine for a market stall without a permit is 200 euros.",
    "A market stall permit is valid for 90 days.",
    "Applications for a market stall permit are answered within 10 days.",
    "The deposit for a market stall key is 50 euros.",
    "The fee for a market stall permit is 45 euros per day, and the fee for its renewal 15 euros.",
    "The permit desk for market stalls is in room 118.",
    "The permit desk opens at 8:30 and closes at noon.",
    "Parking beside the market costs 2 euros an hour.",
    "The fee for a parking permit of residents is 40 euros per year.",
    "The market opens at 7:00 and closes at 14:00.",
    "For a market stall permit two photographs are needed.",
    "The fee for a market hall booth permit is 80 euros per week.",
    "In winter the fee for a market stall permit is 35 euros per day.",
    "Market stall permits: see page 12.",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_other_things_with_other_values_are_no_conflict(text: str) -> None:
    assert _conflicts(FEE, ("45 euros",), GOLD, Chunk("d", text)) == ()


RULES = [
    "The reading room of the archive opens at 9:00 and closes at 16:00 on weekdays.",
    "The reading room of the library opens at 10:00 on weekdays.",
    "The town hall opens at 8:30 on weekdays.",
    "The registry is in room 118 of the town hall.",
    "The archive is in room 12 of the annex.",
    "The head of the archive is Ruth Alder.",
    "The head of the registry is Paul Senn.",
    "Copies in the archive cost 0.30 euros a page.",
    "Copies in the registry cost 0.50 euros a page.",
    "Books are lent for 21 days.",
    "Films are lent for 7 days.",
    "Dogs over 40 cm must be registered by 31 January.",
    "Boats must be registered by 15 May.",
    "Bonfires are allowed on 30 April only.",
    "The swimming pool admits 80 bathers at a time.",
    "The sports hall admits 120 spectators at a time.",
]
ASKED = [
    ("When does the reading room of the archive open?", "9:00", 0),
    ("In which room is the registry?", "118", 3),
    ("Who is the head of the archive?", "Ruth Alder", 5),
    ("What do copies in the archive cost?", "0.30 euros", 7),
    ("For how many days are books lent?", "21 days", 9),
    ("By when must dogs be registered?", "31 January", 11),
    ("How many bathers does the swimming pool admit?", "80", 14),
]


@pytest.mark.parametrize(("question", "answer", "gold"), ASKED)
def test_sixteen_municipal_rules_do_not_contradict_each_other(question: str, answer: str, gold: int) -> None:
    chunks = [Chunk(f"c{i}", text, "Municipal rules") for i, text in enumerate(RULES)]
    case = Case("k", question, tuple(chunks), (answer,))
    assert find_conflicts(case, [chunks[gold]]) == ()


def test_the_later_one_is_named() -> None:
    old = Chunk("old", "The fee for a market stall permit is 40 euros per day.", metadata={"updated": "2019-05-01"})
    new = Chunk("new", GOLD.text, metadata={"updated": "2024-02-01"})
    assert _conflicts(FEE, ("45 euros",), new, old)[0].later_id == "new"
    assert _conflicts(FEE, ("45 euros",), GOLD, old)[0].later_id is None


def test_a_title_can_name_the_thing() -> None:
    other = Chunk("old", "The fee is 40 euros per day.", "Market stall permit")
    gold = Chunk("gold", "The fee is 45 euros per day.", "Market stall permit")
    assert len(_conflicts(FEE, ("45 euros",), gold, other)) == 1
    assert _conflicts(FEE, ("45 euros",), gold, Chunk("x", other.text, "Street music permit")) == ()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("It is 40 euros a day.", True),
        ("€40", True),
        ("45 euros", False),
        ("It was 40 euros and is now 45 euros.", False),
        ("140 euros", False),
        ("I do not know.", False),
        (None, False),
    ],
)
def test_which_value_the_answer_tells(answer: str | None, told: bool) -> None:
    old = Chunk("old", "The fee for a market stall permit is 40 euros per day.")
    case = Case("k", FEE, (GOLD, old), ("45 euros", "€45"), answer=answer)
    assert told_other_value(case, find_conflicts(case, [GOLD])[0]) is told


def test_without_answers_nothing_is_compared() -> None:
    assert _conflicts(FEE, (), GOLD, Chunk("old", "The fee for a market stall permit is 40 euros per day.")) == ()


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("costs 1,000 euros", Kind.MONEY, "1000"),
        ("costs €12.50", Kind.MONEY, "12.50"),
        ("at 9:30", Kind.TIME, "9:30"),
        ("at 2.15 pm", Kind.TIME, "14:15"),
        ("by 1 March 2024", Kind.DATE, "(2024, 3, 1)"),
        ("for forty-five days", Kind.NUMBER, "45"),
        ("about 7.0 kg", Kind.NUMBER, "7"),
        ("up to 8 percent", Kind.SHARE, "8"),
    ],
)
def test_values(text: str, kind: Kind, key: str) -> None:
    found = values(text)
    assert [(value.kind, value.key) for value in found] == [(kind, key)]


@pytest.mark.parametrize(
    ("chunk", "date"),
    [
        (Chunk("a", "x", metadata={"date": "2024-03-05T10:00:00Z"}), (2024, 3, 5)),
        (Chunk("a", "x", metadata={"year": 2019}), (2019,)),
        (Chunk("a", "x", metadata={"updated_at": 1709600000}), (2024, 3, 5)),
        (Chunk("a", "x", "Tariff of 5 March 2024"), (2024, 3, 5)),
        (Chunk("a", "Valid from March 2024, replaces 2021."), (2024, 3)),
        (Chunk("a", "Room 214, phone 555019"), None),
        (Chunk("a", "x", metadata={"date": True}), None),
    ],
)
def test_dates_of_documents(chunk: Chunk, date: tuple[int, ...] | None) -> None:
    assert document_date(chunk) == date


def test_dates_are_compared_as_far_as_both_go() -> None:
    year, day = Chunk("a", "", "Rules 2024"), Chunk("b", "", "Rules of 2024-05-01")
    assert later_of(year, day) is None
    assert later_of(Chunk("c", "", "Rules 2025"), day) == "c"
