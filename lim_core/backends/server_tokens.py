"""Token counts from a llama.cpp-like server's own `/tokenize`: exact, and many texts in one request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lim_core.errors import EndpointError
from lim_core.types import Message, TokenCount

if TYPE_CHECKING:
    import httpx2

# Token 0 parts the texts of a batch: an array of strings and token numbers is what the endpoint takes, and with
# parse_special off no text can turn into it (llama.cpp gives 0 to the padding or unknown token).
_DIVIDER = 0
_BATCH_CHARACTERS = 2_000_000


class ServerCounter:
    """Counts with the tokenizer of the server itself. Safe to call from several threads.

    `root` is the server's address without `/v1`. `band` widens counts of whole prompts where the server cannot say how
    its chat template frames them (0 where `/apply-template` exists).
    """

    source = "server"

    def __init__(self, root: str, key: str | None, *, timeout: float = 60.0) -> None:
        self._root = root.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._http: httpx2.Client | None = None

    def __repr__(self) -> str:
        return f"ServerCounter({self._root!r})"

    def count(self, text: str) -> TokenCount:
        """Tokens of a bare text, without a start token."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> tuple[TokenCount, ...]:
        """Tokens of each text, shape (len(texts),); one request for about two million characters."""
        counts: list[TokenCount] = []
        start = size = 0
        for stop, text in enumerate(texts, 1):
            size += len(text)
            if size >= _BATCH_CHARACTERS or stop == len(texts):
                counts += self._count_batch(texts[start:stop])
                start, size = stop, 0
        return tuple(counts)

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        """Tokens of a whole prompt as the server's chat template lays it out, start token included."""
        prompt = self._post(
            "/apply-template", {"messages": [{"role": m.role, "content": m.content} for m in messages]}
        )["prompt"]
        return _exact(len(self._tokens({"content": prompt, "add_special": True, "parse_special": True})))

    def token_starts(self, text: str) -> tuple[int, ...]:
        """Character offset in `text` at which each token begins; one request, so every span of a prompt costs one pass.

        Tokens that begin inside a character (byte pieces) start at that character.
        """
        starts: list[int] = []
        data = text.encode("utf-8", "surrogatepass")
        offset_of = _character_offsets(data)
        at = 0
        for token in self._tokens({"content": text, "add_special": False, "with_pieces": True}):
            starts.append(offset_of[min(at, len(data))])
            piece = token["piece"]  # type: ignore[index]
            at += len(piece.encode()) if isinstance(piece, str) else len(piece)
        return tuple(starts)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        http, self._http = self._http, None
        if http is not None:
            http.close()

    def _count_batch(self, texts: Sequence[str]) -> list[TokenCount]:
        content: list[str | int] = []
        for text in texts:
            # An empty first string would take the divider for its own; "" costs no token and is left out.
            content += [text, _DIVIDER] if text else [_DIVIDER]
        counts: list[TokenCount] = []
        run = 0
        for token in self._tokens({"content": content, "add_special": False, "parse_special": False}):
            if token == _DIVIDER:
                counts.append(_exact(run))
                run = 0
            else:
                run += 1
        if len(counts) != len(texts):
            raise EndpointError(f"{self._root}/tokenize answered in an unknown shape: use an estimate for this server.")
        return counts

    def _tokens(self, body: dict[str, object]) -> list[object]:
        tokens = self._post("/tokenize", body)["tokens"]
        if not isinstance(tokens, list):
            raise EndpointError(f"{self._root}/tokenize answered in an unknown shape: use an estimate for this server.")
        return tokens

    def _post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        import httpx2

        if self._http is None:
            headers = {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
            self._http = httpx2.Client(trust_env=False, timeout=self._timeout, headers=headers)
        try:
            response = self._http.post(self._root + path, json=body)
            response.raise_for_status()
            answer = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise EndpointError(f"The server at {self._root} did not count tokens ({type(error).__name__}).") from error
        if not isinstance(answer, dict):
            raise EndpointError(f"{self._root}{path} answered in an unknown shape: use an estimate for this server.")
        return answer


def _exact(n: int) -> TokenCount:
    return TokenCount(n, n, n, "server")


def _character_offsets(data: bytes) -> list[int]:
    """For each byte of UTF-8 text, and its end, the index of the character it belongs to."""
    offsets: list[int] = []
    character = -1
    for byte in data:
        if byte & 0xC0 != 0x80:
            character += 1
        offsets.append(character)
    offsets.append(character + 1)
    return offsets
