"""Where each kind of server says how long a context window it serves; None where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Where servers name the window in their model list: vLLM, LM Studio, OpenRouter and Together, Groq, Mistral.
_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")


def window_in_list(entries: Sequence[Mapping[str, object]], name: str) -> int | None:
    """The window of a model in an OpenAI-style model list, where the server names it there."""
    for entry in entries:
        if entry.get("id") != name and name not in _texts(entry.get("aliases")):
            continue
        meta = entry.get("meta")
        sizes = [entry.get(field_) for field_ in _WINDOW_FIELDS]
        # llama-server: the window it was started with; what the model was trained for says nothing about it.
        sizes += [meta.get("n_ctx")] if isinstance(meta, dict) else []
        return next((size for size in sizes if isinstance(size, int) and size > 0), None)
    return None


def window_in_props(props: object) -> int | None:
    """The window that llama-server tells at `/props`."""
    settings = props.get("default_generation_settings") if isinstance(props, dict) else None
    size = settings.get("n_ctx") if isinstance(settings, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def window_of_lm_studio(listing: object, name: str) -> int | None:
    """The window in LM Studio's own model list."""
    data = listing.get("data") if isinstance(listing, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    return window_in_list(entries, name)


def window_of_ollama(running: object, name: str) -> int | None:
    """The window of the loaded model, where this version of Ollama names it."""
    models = running.get("models") if isinstance(running, dict) else None
    for entry in models if isinstance(models, list) else []:
        names = {entry.get("name"), entry.get("model")} if isinstance(entry, dict) else set()
        size = entry.get("context_length") if names & {name, f"{name}:latest"} else None
        if isinstance(size, int) and size > 0:
            return size
    return None


def about_ollama(name: str, window: int | None) -> str:
    """What a user of Ollama must know of its window."""
    now = f" (now {window} tokens)" if window else ""
    return (
        f"Ollama cuts longer prompts without a word at its num_ctx{now} and ignores num_ctx sent to /v1: set it with "
        f"OLLAMA_CONTEXT_LENGTH, or in a Modelfile: FROM {name}, PARAMETER num_ctx 16384."
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
