"""Chunks back out of a prompt as sent, and arms rebuilt in the user's own template."""

from __future__ import annotations

import json

import pytest

from lim_core.importers import accept, import_file, learn_template, propose, template_of
from lim_core.types import Case, Chunk, Message

QUESTION = "How long are raw logs kept?"
TEXTS = (
    "Dashboards refresh every five minutes.",
    "Raw logs are kept for 45 days, then deleted.",
    "Alerts are sent by pager, never by mail.",
    'The "gold" tier has a second site.',
    "Traces are sampled at one in a hundred.",
)
CHUNKS = tuple(Chunk(f"k{n}", text, f"page {n}.md") for n, text in enumerate(TEXTS, 1))


def _each(form: str, joined: str = "\n") -> str:
    return joined.join(
        form.format(n=n, nn=f"{n:02d}", z=n - 1, title=c.title, text=c.text, id=c.id) for n, c in enumerate(CHUNKS, 1)
    )


TEMPLATES = {
    "numbered": "Use the docs.\n\n"
    + _each("Document [{n}](Title: {title}) {text}")
    + f"\n\nQuestion: {QUESTION}\nAnswer:",
    "brackets": "Context:\n" + _each("[{n}] {text}", "\n\n") + f"\n\nQ: {QUESTION}\nA:",
    "zero-based": "Context:\n" + _each("[{z}] {text}") + f"\n\nQuestion: {QUESTION}",
    "padded": "Context:\n" + _each("Passage {nn} (of {title}):\n{text}", "\n\n") + f"\n\nQuestion: {QUESTION}",
    "xml": "<documents>\n"
    + _each(
        '<document index="{n}">\n<source>{title}</source>\n<document_content>\n{text}\n</document_content>\n</document>'
    )
    + f"\n</documents>\n\n<question>{QUESTION}</question>\nThink first.",
    "ids": "Sources below.\n" + _each('<doc id="{id}">{text}</doc>') + f"\nNow answer: {QUESTION}",
    "numbered tags": "Sources below.\n" + _each("<doc{n}>{text}</doc{n}>") + f"\nNow answer: {QUESTION}",
    "dashes": "Context:\n" + _each("{text}", "\n---\n") + f"\n\nQuestion: {QUESTION}",
    "metadata": "Context information is below.\n---------------------\n"
    + _each("file_name: {title}\n\n{text}", "\n\n")
    + f"\n---------------------\nGiven the context information, answer the query.\nQuery: {QUESTION}\nAnswer: ",
    "empty lines": "Use the following pieces of context to answer the question at the end.\n\n"
    + _each("{text}", "\n\n")
    + f"\n\nQuestion: {QUESTION}\nHelpful Answer:",
    "json": "Search results:\n"
    + json.dumps([{"id": c.id, "title": c.title, "text": c.text} for c in CHUNKS], indent=2)
    + f"\n\nUser question: {QUESTION}",
    "json with ranks": "Docs: "
    + json.dumps([{"rank": n, "content": c.text} for n, c in enumerate(CHUNKS, 1)])
    + f"\nQuestion: {QUESTION}",
    "headings": "# Context\n\n" + _each("## {title}\n\n{text}", "\n\n") + f"\n\n# Question\n\n{QUESTION}\n",
    "numbered headings": "# Context\n\n"
    + _each("### Document {n}: {title}\n{text}", "\n\n")
    + f"\n\n# Question\n\n{QUESTION}",
    "labels": _each("Source {n}: {title}\nContent: {text}\n\n", "") + f"Question: {QUESTION}",
    "list": "Read these facts:\n" + _each("{n}. {text}") + f"\n\nQuestion: {QUESTION}",
}
TITLED = {"numbered", "padded", "xml", "metadata", "json", "headings", "numbered headings", "labels"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_chunks_and_question_are_proposed_from_the_prompt(name: str) -> None:
    proposal = propose([Message("system", "You are terse."), Message("user", TEMPLATES[name])])
    assert proposal is not None
    assert tuple(chunk.text for chunk in proposal.chunks) == TEXTS
    assert proposal.question == QUESTION


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_original_chunks_give_the_original_prompt_byte_for_byte(name: str) -> None:
    messages = (Message("system", f"You are terse. {QUESTION}"), Message("user", TEMPLATES[name]))
    learned = learn_template(messages, CHUNKS, QUESTION)
    assert learned.template is not None
    prompt = learned.template.lay_out(QUESTION, CHUNKS)
    assert prompt.messages == messages
    for span, chunk in zip(prompt.spans, CHUNKS, strict=True):
        raw = prompt.messages[span.message].content[span.start : span.end]
        assert span.chunk_id == chunk.id
        assert raw in (chunk.text, json.dumps(chunk.text)[1:-1])


@pytest.mark.parametrize("name", TEMPLATES)
def test_another_order_is_what_the_users_own_code_would_have_made(name: str) -> None:
    order = (4, 0, 3, 1, 2)
    moved = tuple(CHUNKS[index] for index in order)
    template = learn_template([Message("user", TEMPLATES[name])], CHUNKS, QUESTION).template
    assert template is not None
    made = template.lay_out(QUESTION, moved).messages[0].content
    # The same template filled by hand with the chunks in the new order.
    slots = dict(zip(TEXTS, (c.text for c in moved), strict=True)) | dict(
        zip((c.title for c in CHUNKS), (c.title for c in moved), strict=True)
    ) | dict(zip((f'"{c.id}"' for c in CHUNKS), (f'"{c.id}"' for c in moved), strict=True))  # fmt: skip
    want = TEMPLATES[name]
    escaped = {json.dumps(a)[1:-1]: json.dumps(b)[1:-1] for a, b in slots.items()} if "json" in name else slots
    if name == "ids":
        escaped |= {f'"{c.id}"': f'"{m.id}"' for c, m in zip(CHUNKS, moved, strict=True)}
    if name == "json":
        escaped = {k.replace('\\"', '"') if k.startswith('\\"k') else k: v.replace('\\"', '"') if v.startswith('\\"k') else v
                   for k, v in escaped.items()}  # fmt: skip
    marks = {text: f"\x00{number}\x00" for number, text in enumerate(escaped)}
    for text, mark in marks.items():
        want = want.replace(text, mark)
    for (_, new), mark in zip(escaped.items(), marks.values(), strict=True):
        want = want.replace(mark, new)
    assert made == want


def test_fewer_chunks_and_a_stranger_fit_in() -> None:
    template = learn_template([Message("user", TEMPLATES["numbered"])], CHUNKS, QUESTION).template
    assert template is not None
    new = Chunk("new", "Backups run at night.", "backup.md")
    made = template.lay_out(QUESTION, [CHUNKS[2], new]).messages[0].content
    assert made == (
        "Use the docs.\n\nDocument [1](Title: page 3.md) Alerts are sent by pager, never by mail.\n"
        f"Document [2](Title: backup.md) Backups run at night.\n\nQuestion: {QUESTION}\nAnswer:"
    )
    oracle = template.lay_out(QUESTION, [CHUNKS[1]]).messages[0].content
    assert oracle.count("Document [1]") == 1
    assert "Document [2]" not in oracle


def test_a_stranger_is_escaped_where_the_prompt_is_json() -> None:
    template = learn_template([Message("user", TEMPLATES["json with ranks"])], CHUNKS, QUESTION).template
    assert template is not None
    made = template.lay_out(QUESTION, [Chunk("new", 'say "no"\nthen go'), CHUNKS[0]]).messages[0].content
    found = json.loads(made[len("Docs: ") : made.index("\nQuestion")])
    assert found == [{"rank": 1, "content": 'say "no"\nthen go'}, {"rank": 2, "content": TEXTS[0]}]


def test_another_question_takes_the_place_of_the_first_everywhere() -> None:
    messages = [Message("system", f"The user asks: {QUESTION}"), Message("user", TEMPLATES["brackets"])]
    template = learn_template(messages, CHUNKS, QUESTION).template
    assert template is not None
    prompt = template.lay_out("Who is paged?", CHUNKS)
    assert [QUESTION in m.content for m in prompt.messages] == [False, False]
    assert all("Who is paged?" in m.content for m in prompt.messages)


def test_a_clipped_chunk_between_two_others_is_no_template() -> None:
    long = Chunk("long", "Raw logs are kept. " * 80)
    chunks = (CHUNKS[0], long, CHUNKS[2])
    text = "Context:\n" + "\n".join((TEXTS[0], long.text[:1_000], TEXTS[2])) + "\nQuestion: ?"
    learned = learn_template([Message("user", text)], chunks)
    assert learned.template is None
    assert "long" in learned.reason
    assert learned.missing == ("long",)


def test_chunks_that_stand_nowhere_are_no_template() -> None:
    assert template_of(Case("a", QUESTION, CHUNKS)).reason == "the prompt as sent is not known"
    assert learn_template([Message("user", "Hello")], CHUNKS).template is None


@pytest.mark.parametrize(
    "text",
    [
        "Context:\n" + "\n\n".join(TEXTS) + "\n\nAnswer briefly:",
        "Context:\n" + "\n\n".join((*TEXTS[:4], f"FAQ: {QUESTION} See page 2.")) + "\n\nAnswer briefly:",
    ],
)
def test_a_prompt_that_asks_another_question_or_none_is_no_template(text: str) -> None:
    chunks = (*CHUNKS[:4], Chunk("k5", TEXTS[4] if TEXTS[4] in text else f"FAQ: {QUESTION} See page 2."))
    learned = template_of(Case("a", QUESTION, chunks, prompt=(Message("user", text),)))
    assert learned.template is None
    assert "the question is not in the prompt as sent" in learned.reason
    assert learned.order == tuple(chunk.id for chunk in chunks)


def test_a_short_chunk_that_is_clipped_would_stay_in_the_template() -> None:
    text = "Context:\n" + "\n\n".join((TEXTS[0], "Raw logs are kept for 45 days", *TEXTS[2:])) + f"\n\nQ: {QUESTION}"
    learned = template_of(Case("a", QUESTION, CHUNKS, prompt=(Message("user", text),)))
    assert learned.template is None
    assert learned.reason == "chunk k2 stands in the prompt as sent in part only"
    gone = text.replace("Raw logs are kept for 45 days\n\n", "")
    left_out = template_of(Case("b", QUESTION, CHUNKS, prompt=(Message("user", gone),)))
    assert left_out.template is not None
    assert left_out.missing == ("k2",)


def test_a_question_in_another_message_without_its_mark_is_still_asked() -> None:
    prompt = (
        Message("user", "Context:\n" + "\n\n".join(TEXTS)),
        Message("user", "how long are  raw logs kept - be brief"),
    )
    assert template_of(Case("a", QUESTION, CHUNKS, prompt=prompt)).template is not None


def test_a_confirmed_proposal_makes_a_case_whose_template_is_the_prompts() -> None:
    imported = import_file(TEMPLATES["xml"].encode(), "paste")
    (case,) = imported.cases
    assert case.chunks == ()
    ready = accept(case, imported.proposals[case.id])
    assert (ready.question, len(ready.chunks)) == (QUESTION, 5)
    assert not {"needs-chunks", "needs-question"} & set(ready.tags)
    template = template_of(ready).template
    assert template is not None
    assert template.lay_out(ready.question, ready.chunks).messages == ready.prompt


@pytest.mark.parametrize(
    "text",
    [
        "Hello, how are you?",
        "What is in [1] and [2]?",
        "def f(x):\n    return x[0] + x[1]\n",
        "1. Be brief.\n2. Be kind.\n",
    ],
)
def test_a_prompt_without_context_proposes_nothing(text: str) -> None:
    assert propose([Message("user", text)]) is None
