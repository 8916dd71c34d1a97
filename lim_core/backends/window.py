"""Reads the two numbers out of a provider's words for "longer than the context window"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_N = r"(\d[\d,_]*)"


def _words(pattern: str) -> re.Pattern[str]:
    """A pattern in which <window>, <needed>, <prompt>, <output> and <over> stand for token counts."""
    return re.compile(
        re.sub(r"<(\w+)>", lambda m: _N.replace("(", f"(?P<{m[1]}>", 1), pattern), re.IGNORECASE | re.DOTALL
    )


# Most telling first: the first pattern that matches gives the numbers.
_PATTERNS = tuple(
    _words(pattern)
    for pattern in (
        # OpenAI, Azure, vLLM, OpenRouter, DeepSeek: with the split into prompt and completion
        r"context length (?:is|of) <window> tokens.{0,80}?requested (?:about )?(?:a total of )?<needed> tokens"
        r".{0,10}?<prompt> (?:tokens from|in|of).{0,40}?<output> (?:tokens for|in|of)",
        # vLLM: "This model's maximum context length is W tokens and your request has P input tokens (O > W - P)"
        r"context length is <window> tokens and your request has <prompt> input tokens \(<output> >",
        r"context length (?:is|of)(?: only)? <window> tokens.{0,80}?(?:requested|resulted in|contains?|has|have) "
        r"(?:about )?(?:a total of )?(?:at least )?<needed> ",
        r"configured limit of <window> tokens.{0,80}?resulted in <needed> tokens",
        # llama.cpp
        r"request \(<needed> tokens\) exceeds the available context size \(<window> tokens\)",
        # SGLang
        r"input \(<needed> tokens\) is longer than the model's context length \(<window> tokens\)",
        # Anthropic, and what speaks its words
        r"prompt is too long: <needed> tokens > <window> maximum",
        r"exceed context limit: <prompt> \+ <output> > <window>",
        # Gemini
        r"input token count \(?<needed>\)? exceeds the maximum number of tokens allowed \(?<window>\)?",
        # Mistral
        r"prompt contains <needed> tokens.{0,60}?too large for model with <window> maximum context",
        # LM Studio
        r"keep the first <needed> tokens when.{0,40}?context.{0,60}?context length of(?: only)? <window> tokens",
        # Text Generation Inference
        r"must be <= <window>\. Given: <prompt> `inputs` tokens and <output> `max_new_tokens`",
        # Cohere
        r"cannot exceed <window> - received <needed>",
        # Ollama
        r"exceeded max(?:imum)? context length by <over> tokens",
        r"maximum context length (?:is|of) <window>",
        r"context (?:length|size|window)(?: is| of)?(?: only)? \(?<window> tokens",
    )
)
_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_SIGNS = re.compile(
    r"context[ _](?:length|window|size|limit)|prompt (?:is )?too long|input is too long|too many (?:input )?tokens"
    r"|input tokens exceed the configured limit|`max_new_tokens` must be <="
    r"|input (?:token count|length) .{0,20}exceeds|reduce the length of the (?:messages|prompt|input)"
    r"|larger than the context|greater than the context|exceeds? the (?:model'?s )?(?:maximum )?"
    r"(?:number of )?(?:context|tokens allowed)"
    r"|cannot exceed \d+ - received",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WindowRefusal:
    """An endpoint's refusal of a prompt for its length, in tokens; None where it named no number.

    `needed` is prompt plus output where the two were told apart, else the prompt.
    """

    window: int | None
    needed: int | None
    prompt: int | None = None
    output: int | None = None


def read_refusal(message: str, fields: Mapping[str, object]) -> WindowRefusal | None:
    """The refusal in an error's message and fields, or None where the error is about something else."""
    window, needed = _whole(fields.get("n_ctx")), _whole(fields.get("n_prompt_tokens"))
    code = f"{fields.get('code', '')} {fields.get('type', '')}"
    if window is not None and needed is not None:
        return WindowRefusal(window, needed, needed)
    if not (any(known in code for known in _CODES) or _SIGNS.search(message)):
        return None
    for pattern in _PATTERNS:
        found = pattern.search(message)
        if found is None:
            continue
        counts = {name: _whole(text) for name, text in found.groupdict().items()}
        window, needed = counts.get("window"), counts.get("needed")
        prompt, output = counts.get("prompt"), counts.get("output")
        if needed is None and prompt is not None and output is not None:
            needed = prompt + output
        return WindowRefusal(window, needed, prompt, output)
    return WindowRefusal(None, None)


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        return int(str(value).replace(",", "").replace("_", ""))
    except ValueError:
        return None
