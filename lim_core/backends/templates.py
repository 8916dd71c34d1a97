"""The plain chat template for models without one of their own, and the grammar of a one-line answer."""

from __future__ import annotations

# Line one must hold something: a base model often begins with the newline that would end its answer.
ONE_LINE = 'root ::= " "? [^\\n\\r\\t ] [^\\n]* "\\n"?'

# Invented; in the layout of the prompts, so that a base model sees what an answer looks like: short, and from a document.
_EXAMPLES = """\
Document [1](Title: Ferry to Holm) The ferry to Holm leaves at 06:40 from the north pier.
Document [2](Title: Market hall) The market hall is closed on Mondays for cleaning.

Question: On which day is the market hall closed?
Answer: Monday

Document [1](Title: Reading room) The reading room lends up to nine books to each member.
Document [2](Title: Boat club) The boat club was founded by Tilda Rask, who also built the shed.

Question: Who founded the boat club?
Answer: Tilda Rask

"""

# Messages joined by blank lines, and "Answer:" at the end unless it stands there already.
_JOIN = (
    "{%- for message in messages -%}{%- if not loop.first -%}{{ '\\n\\n' }}{%- endif -%}{{ message['content'] }}{%- endfor -%}"
    "{%- if not (messages[-1]['content'] | trim).endswith('Answer:') -%}{{ '\\nAnswer:' }}{%- endif -%}"
)


def plain_template(*, examples: bool) -> str:
    """The Jinja chat template: message contents joined, ending in `Answer:`; with two worked examples in front on request."""
    return ("{{ " + repr(_EXAMPLES) + " }}" if examples else "") + _JOIN
