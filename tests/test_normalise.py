"""The normaliser: what an alias is found in and what it is not, and where."""

from __future__ import annotations

import random
import time
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lim_core.errors import InputError
from lim_core.judges import check_answers, contains
from lim_core.text.folding import fold, fold_with_offsets
from lim_core.text.normalise import contains_any, find_aliases, normalise
from lim_core.types import Case


def case(*answers: str) -> Case:
    return Case(id="x", question="How long?", chunks=(), answers=answers)


def found(alias: str, text: str) -> bool:
    """Whether an alias is found; both forms of the search must agree."""
    quick = contains_any([alias], text)
    assert quick == bool(find_aliases([alias], text))
    return quick


NUMBERS_FOUND = [
    ("12", "It takes 12 days."),
    ("12", "共12天"),
    ("12", "12km"),
    ("12", "the 12-day rule"),
    ("5", "see A-5"),
    ("12", "The fee is 12."),
    ("12", "１２日"),
    ("１２", "12 days"),
    ("12", "१२ दिन"),
    ("٣٫٥", "3.5"),
    ("12", "**12**"),
    ("3.14", "(3.14)"),
    ("(3.14)", "it is 3.14."),
    ("3．14", "3.14"),
    ("10", "10.0"),
    ("10.50", "10.5"),
    ("0.5", ".5"),
    ("3.5", "03.5"),
    ("1,000", "1000"),
    ("1000", "1,000.00"),
    ("1000", "1\u202f000 euros"),
    ("1000", "1\u00a0000"),
    ("1000", "1'000"),
    ("1000", "1’000"),
    ("10000", "10 000 people"),
    ("12,345,678", "12345678"),
    ("100000", "1,00,000"),
    ("3,5", "3,5 km"),
    ("1.234,56", "1.234,56 Euro"),
    ("2", "rows 1,2,3"),
    ("1, 2, 3", "1,2,3"),
    ("-5", "it is \u22125 °C"),
    ("-5", "\u20135"),
    ("-5", "minus 5 degrees"),
    ("-5", '"-5"'),
    ("-5", "**-5**"),
    ("-5", "气温为-5度"),
    ("-5", "(-5)"),
    ("5", "3-5 days"),
    ("5", "3\u20135 days"),
    ("5", "3 \u20135 days"),
    ("5", "10 - 5"),
    ("0", "-0"),
    ("5%", "5 percent"),
    ("5 per cent", "5%"),
    ("5", "5%"),
    ("$5", "5 dollars"),
    ("5 €", "€5"),
    ("€ 5", "EUR 5.00"),
    ("5 million", "$5 million"),
    ("$5 million", "5 million dollars"),
    ("-$5", "$-5"),
    ("$5", "US$5"),
    ("5", "€ 5"),
    ("14:30", "at 14:30."),
    ("9:30", "09:30"),
    ("2024", "12.05.2024"),
    ("12/05/2024", "12.05.2024"),
    ("2024-05-12", "2024-5-12"),
    ("1.2.3", "v1.2.3"),
    ("007", "agent 007"),
    ("B12", "vitamin B12"),
    ("CO2", "CO₂"),
    ("10²", "10² m"),
    ("2½", "2 ½ cups"),
    ("9" * 6000, "x " + "9" * 6000),
]
NUMBERS_NOT_FOUND = [
    ("12", "112"),
    ("12", "123"),
    ("12", "2012"),
    ("3.14", "314"),
    ("314", "3.14"),
    ("10", "1.0"),
    ("1.0", "10"),
    ("10", "100"),
    ("12", "12.5"),
    ("12", "12,5"),
    ("12.5", "12"),
    ("12.5", "12,5"),
    ("3,5", "3.5"),
    ("3,5", "35"),
    ("35", "3,5"),
    ("3", "3,5"),
    ("5", "3,5"),
    ("1", "1.000"),
    ("1000", "1.000"),
    ("10", "10 000 people"),
    ("1", "1,000"),
    ("5", "-5"),
    ("5", "\u22125"),
    ("5", "minus 5"),
    ("-5", "5"),
    ("-5", "A-5"),
    ("-5", "3-5"),
    ("5%", "5 days"),
    ("€5", "$5"),
    ("€5", "5 days"),
    ("14", "14:30"),
    ("30", "14:30"),
    ("1.2", "1.2.3"),
    ("192.168", "192.168.0.1"),
    ("7", "007"),
    ("10", "10²"),
    ("2", "2½"),
    ("1", "1e-5"),
    ("2", "25 m²"),
    ("2024", "20245"),
]
TEXTS_FOUND = [
    ("Café", "un cafe\u0301 noir"),
    ("cafe\u0301", "CAFÉ"),
    ("office", "oﬃce"),
    ("Straße", "STRASSE"),
    ("İstanbul", "istanbul"),
    ("ISPARTA", "ısparta"),
    ("Vienna", "Vi\u200ben\u00adna"),
    ("Vienna", "\u202eVienna\u202c 😀"),
    ("Vienna", "Vienna¹ is"),
    ("Lego", "Lego™ set"),
    ("O'Brien", "O’Brien"),
    ("Hawai'i", "Hawaiʻi"),
    ("Einstein", "Einstein’s theory"),
    ("école", "l’école"),
    ("14-year", "14 year plan"),
    ("U.S.", "the US"),
    ("USA", "U.S.A."),
    ("2:30 pm", "2:30 p.m."),
    ("Simon & Garfunkel", "Simon and Garfunkel"),
    ("C++", "written in C++."),
    ("25 m²", "an area of 25 m²"),
    ("Eiffel Tower", "the\n  Eiffel   tower"),
    ("the Eiffel Tower", "Eiffel Tower"),
    ("Gone with Wind", "Gone with the Wind"),
    ("Gone with the Wind", "gone with wind"),
    ("The The", "the band The The"),
    ("an", "an"),
    ("Vitamin A", "take vitamin A daily"),
    ("US", "made in the US"),
    ("US", "us"),
    ("A", "Group A."),
    ("北京", "我在北京大学"),
    ("北京大学", "我在北京\n大学"),
    ("東京", "東京都です"),
    ("ガス", "都市ガス料金"),
    ("ガス", "ｶﾞｽ料金"),
    ("กรุงเทพ", "อยู่ที่กรุงเทพมหานคร"),
    ("서울", "서울은 수도이다"),
    ("한글", unicodedata.normalize("NFD", "한글이다")),
    ("القاهرة", "في القاهرة."),
    ("محمد", "مُحَمَّد"),
    ("Київ", "місто КИЇВ"),
    ("हिन्दी", "वह हिन्दी बोलता है"),
    ("Paris", "在Paris的"),
]
TEXTS_NOT_FOUND = [
    ("port", "the airport"),
    ("art", "party"),
    ("cafe", "café"),
    ("m2", "25 m²"),
    ("25 m", "25 m²"),
    ("C", "C++"),
    ("C++", "C"),
    ("Vitamin A", "Vitamin C"),
    ("US", "they tell us"),
    ("IT", "it is new"),
    ("A", "it is a dog"),
    ("北京大学", "我在北京。大学"),
    ("ที", "ที่"),
    ("هرة", "في القاهرة"),
    ("हिन्द", "हिन्दी"),
    ("blue house", "blue, small house"),
]
NOTHING = ["", " ", "*", "...", "\u200b", "😀", "--", "“”", "²"]


@pytest.mark.parametrize(("alias", "text"), NUMBERS_FOUND + TEXTS_FOUND)
def test_found(alias: str, text: str) -> None:
    assert found(alias, text)


@pytest.mark.parametrize(("alias", "text"), NUMBERS_NOT_FOUND + TEXTS_NOT_FOUND)
def test_not_found(alias: str, text: str) -> None:
    assert not found(alias, text)


@pytest.mark.parametrize("alias", NOTHING)
def test_an_alias_of_nothing_is_an_error_and_never_a_match(alias: str) -> None:
    assert normalise(alias) == ""
    assert not found(alias, "anything * ... 😀 at all")
    with pytest.raises(InputError, match=r"answers\[1\].*no letter or digit"):
        check_answers(case("12", alias))
    with pytest.raises(InputError):
        contains(case("12", alias), "It takes 12 days.")


def test_normalise() -> None:
    assert normalise("The  fee is\n€1,000.50!") == "fee is 1000.5 €"
    assert normalise("The The") == "the the"
    assert normalise("共１２天") == "共 12 天"
    assert normalise("A") == "a"


@pytest.mark.parametrize(
    ("aliases", "text", "places"),
    [
        (["12 days"], "in 12  days", ["12  days"]),
        (["cafe\u0301"], "🙂 un Café, cafe\u0301!", ["Café", "cafe\u0301"]),
        (["oﬃce"], "the office", ["office"]),
        (["ss"], "ß-ss", ["ß", "ss"]),
        (["12", "12 days"], "12 days, 12", ["12 days", "12", "12"]),
        (["12"], "共１２天和12", ["１２", "12"]),
        (["gas"], "ｶﾞｽ gas", ["gas"]),
        (["ガス"], "x ｶﾞｽ y", ["ｶﾞｽ"]),
        (["Vienna"], "in Vi\u200ben\u00adna.", ["Vi\u200ben\u00adna"]),
        (["-5"], "it is \u22125 °C", ["\u22125"]),
        (["wind in willows"], "The Wind in the Willows", ["Wind in the Willows"]),
        (["12"], "12 12 12", ["12", "12", "12"]),
        (["x"], "", []),
        ([], "x", []),
    ],
)
def test_places_are_in_the_original_text(aliases: list[str], text: str, places: list[str]) -> None:
    matches = find_aliases(aliases, text)
    assert [text[match.start : match.end] for match in matches] == places
    assert all(match.alias in aliases for match in matches)


# Letters, digits, marks and signs that have fooled normalisers, in any order.
ODD = st.text(
    st.sampled_from(
        "aAzßıİ́̈ °µ²½①ﬁ™'’-–−.,:%$€&+#_ \n\u00a0\u202f\u200b\u00ad017٣१８北京。、ガｶﾞกี่한한مَهहि😀🇩🇪\u202e()\"*"
    ),
    max_size=40,
)


@given(ODD | st.text(max_size=40))
@settings(max_examples=600, deadline=None)
@example("e\u200b\u0301")
@example("\ufe77")
@example("\ufd3c")
@example("\u0131\u0307")
@example("'\U0001193d\u1a62")
@example("\u0f75\u0307")
def test_folding_piece_by_piece_is_folding(text: str) -> None:
    whole, offsets = fold_with_offsets(text)
    assert whole == fold(text)
    if offsets is not None:
        assert len(offsets) == len(whole)
        assert all(0 <= start < end <= len(text) for start, end in offsets)
        assert offsets == sorted(offsets)


def test_a_letter_in_a_list_is_no_article() -> None:
    assert not contains_any(["A&B"], "R and B")
    assert not contains_any(["A and B"], "vitamins C and B")
    assert contains_any(["A&B"], "the A and B licences")
    assert contains_any(["a ferry"], "by ferry")
    assert contains_any(["A&"], "A&")


@given(ODD, ODD)
@settings(max_examples=600, deadline=None)
def test_quick_search_and_places_agree(alias: str, text: str) -> None:
    matches = find_aliases([alias], text)
    assert contains_any([alias], text) == bool(matches)
    assert all(0 <= match.start < match.end <= len(text) for match in matches)


@given(ODD)
@settings(max_examples=400, deadline=None)
def test_an_alias_is_found_in_itself(alias: str) -> None:
    assert contains_any([alias], alias) == bool(normalise(alias))
    assert contains_any([alias], f"( {alias} )") == bool(normalise(alias)) or alias.isupper()


@given(ODD, ODD)
@settings(max_examples=400, deadline=None)
@example("\ufb2e", "\ufb2e")
@example("\u0374", "So\u0374")
def test_composition_does_not_matter(alias: str, text: str) -> None:
    expected = contains_any([alias], text)
    for form in ("NFC", "NFD"):
        assert contains_any([unicodedata.normalize(form, alias)], text) == expected
        assert contains_any([alias], unicodedata.normalize(form, text)) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**12))
@settings(max_examples=300)
def test_whole_numbers_match_by_value(one: int, other: int) -> None:
    assert found(str(one), f"It is {other:,} in all.") == (one == other)
    assert found(f"{one:,}", f"共{one}天")
    assert found(f"-{one}", f"It is \u2212{one:,}.")
    assert one == 0 or not found(str(one), f"It is \u2212{one:,}.")


@given(st.decimals(0, 10**6, places=2), st.decimals(0, 10**6, places=2))
@settings(max_examples=300)
def test_decimals_match_by_value(one: object, other: object) -> None:
    assert found(f"{one}", f"({other})") == (one == other)
    assert found(f"{one:,}", f"{one}")


# --- speed -----------------------------------------------------------------------------------------


def _words(count: int, seed: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(3000)]
    return " ".join(rng.choices([*words, *map(str, range(300))], k=count))


LONG = ["我在北京大学学习，共13天。" * 14_000, "é" * 200_000, "12" * 100_000, "1," * 100_000, "a." * 100_000]
LONG += ["123 " * 50_000, "a." * 99_999 + "ab", "1" + " 123" * 50_000, "a[1,2 " * 33_000, "the " * 50_000]
LONG += [
    "a " * 100_000,
    "-" * 200_000,
    "1 000 " * 33_000,
    "a\u0301" * 100_000,
    "i do not " * 22_000,
    "\u0301" * 200_000,
    "minus " * 33_000,
]


@pytest.mark.parametrize("text", [*LONG, _words(34_000, 1)[:200_000]], ids=lambda text: repr(text[:8] + text[-3:]))
def test_a_long_text_is_searched_in_linear_time(text: str) -> None:
    aliases = ["a an", "twelve days", "999.5", "12 days", "東京", "a b c"]
    start = time.perf_counter()
    assert not contains_any(aliases, text)
    find_aliases(aliases, text)
    contains(case(*aliases), text)
    # Some 0.1 to 0.5 s on an idle core for all three; the bound only catches searches that go wrong by the square.
    assert time.perf_counter() - start < 8
