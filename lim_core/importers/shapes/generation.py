"""What a chat model of LangChain replied, as its tracers keep it: an LLMResult with lists of generations."""

from __future__ import annotations

from collections.abc import Mapping

from lim_core.importers.shapes.fields import dig, first, label, mapping
from lim_core.types import Json


def generation_in(outputs: Json) -> Mapping[str, Json]:
    """The first generation, empty where there is none."""
    item: Json = mapping(outputs).get("generations")
    while isinstance(item, list) and item:
        item = item[0]
    return mapping(item)


def replied_model(outputs: Json) -> str | None:
    """The model that the reply names, for a run whose settings name none."""
    reply = mapping(dig(generation_in(outputs), "message.kwargs.response_metadata"))
    told = mapping(mapping(outputs).get("llm_output"))
    return label(first(reply, "model_name", "model") or first(told, "model_name", "model")) or None
