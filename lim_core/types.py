"""The frozen values and protocols that the parts of lim pass to one another.

Token counts are in tokens of the tested model, times in seconds, ranks and slots 0-based, shares in [0, 1].
`None` always means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from lim_core.errors import LimError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


class Outcome(StrEnum):
    """What a judge, or a fault, made of one trial. Only the first three are scored."""

    CORRECT = "correct"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    EMPTY = "empty"
    ERROR = "error"

    @property
    def scored(self) -> bool:
        """Whether this outcome counts towards n."""
        return self in (Outcome.CORRECT, Outcome.WRONG, Outcome.ABSTAINED)


class Status(StrEnum):
    """What a stage says of the thing it looks at."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    FAIL = "fail"
    UNDETERMINED = "undetermined"
    SKIPPED = "skipped"


class Cause(StrEnum):
    """The first stage that lost the answer, by name. Names are part of the JSON contract."""

    TRUNCATED = "TRUNCATED"
    OUTPUT_BUDGET = "OUTPUT_BUDGET"
    RANKED_OUT = "RANKED_OUT"
    NOT_RETRIEVED = "NOT_RETRIEVED"
    MISSING_DOCUMENT = "MISSING_DOCUMENT"
    CONFLICTING_SOURCES = "CONFLICTING_SOURCES"
    ASSEMBLY_LOSS = "ASSEMBLY_LOSS"
    LOST_IN_THE_MIDDLE = "LOST_IN_THE_MIDDLE"
    POSITION_SENSITIVE = "POSITION_SENSITIVE"
    DISTRACTED = "DISTRACTED"
    PROMPT_SENSITIVE = "PROMPT_SENSITIVE"
    NOT_REPRODUCED = "NOT_REPRODUCED"
    CLOSED_BOOK_KNOWN = "CLOSED_BOOK_KNOWN"
    CANNOT_ANSWER = "CANNOT_ANSWER"
    UNGROUNDED = "UNGROUNDED"
    POLICY = "POLICY"
    OPERATIONS = "OPERATIONS"
    NO_FAULT_FOUND = "NO_FAULT_FOUND"
    UNDETERMINED = "UNDETERMINED"


class ScoreDirection(StrEnum):
    """Whether a higher retrieval score is better."""

    SIMILARITY = "similarity"
    DISTANCE = "distance"


# --- the case -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. `score` may be absent and may be a distance; rank is its place in its list."""

    id: str
    text: str
    title: str = ""
    score: float | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, text only."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts that a server reported; None where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_prompt_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One complaint. Chunks are in retrieved order, best first; lists that were not given are None, not empty."""

    id: str
    question: str
    chunks: tuple[Chunk, ...]
    answers: tuple[str, ...] = ()
    gold_ids: tuple[str, ...] = ()
    candidates: tuple[Chunk, ...] | None = None
    corpus: tuple[Chunk, ...] | None = None
    score_direction: ScoreDirection | None = None
    prompt: tuple[Message, ...] | None = None
    answer: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    params: Mapping[str, Json] = field(default_factory=dict, hash=False)
    context_window: int | None = None
    max_output_tokens: int | None = None
    model: str | None = None
    forbidden_ids: tuple[str, ...] = ()
    answerable: bool | None = None
    tags: tuple[str, ...] = ()
    # Chunks that hold an answer, are not gold, and that the user has confirmed as no spoiler of a position test.
    harmless_ids: tuple[str, ...] = ()


# --- prompts and tokens ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Where one chunk's text stands in a prompt: message index and half-open character range in it."""

    chunk_id: str
    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages ready to send, the template that made them, and the span of every chunk laid out in them."""

    messages: tuple[Message, ...]
    spans: tuple[Span, ...] = ()
    template: str = ""


class Frame(Protocol):
    """What chunks are laid out in: lim's own template, or the one learnt from the user's prompt as sent."""

    @property
    def name(self) -> str:
        """Stable name, part of the release identity."""

    def lay_out(self, question: str, chunks: Sequence[Chunk]) -> Prompt:
        """The prompt with these chunks in this order; spans are in the order of the chunks."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """A token count with its band; an exact count has low == n == high. `source` says who counted."""

    n: int
    low: int
    high: int
    source: str

    @property
    def exact(self) -> bool:
        """Whether the band has no width."""
        return self.low == self.high


class Counter(Protocol):
    """Counts tokens as one model's tokenizer would, or estimates with a band."""

    @property
    def source(self) -> str:
        """Who counts: `server`, `bpe-openai:NAME` or `estimate`."""

    def count(self, text: str) -> TokenCount:
        """Tokens of a bare text."""

    def count_messages(self, messages: Sequence[Message]) -> TokenCount:
        """Tokens of a whole prompt, chat template included as far as it is known."""


# --- calling a model ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One request for a completion. `params` holds temperature, max_tokens and the like, as asked for."""

    messages: tuple[Message, ...]
    params: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request brought back. `sent_params` is what really went over the wire."""

    text: str
    finish_reason: str | None
    usage: Usage
    seconds: float
    sent_params: Mapping[str, Json] = field(default_factory=dict)
    model: str | None = None


class Model(Protocol):
    """An opened backend. `repr` never shows a key.

    `endpoint` identifies what answers (it goes into cache keys and the release): for the embedded model the hash of the
    weights, window and template; for a remote one its origin and path. `slots` is how many requests it works on at once.
    """

    @property
    def name(self) -> str: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def slots(self) -> int: ...
    @property
    def context_window(self) -> int | None: ...
    @property
    def counter(self) -> Counter: ...
    @property
    def default_params(self) -> Mapping[str, Json]:
        """Parameters for trials that do not say otherwise: temperature, max_tokens, stop."""

    async def complete(self, request: Request) -> Reply:
        """Send one HTTP request, without retries.

        Raises:
            CallFault: this request failed; its kind says how, and whether a retry can help.
            ConfigError: no request can succeed (401, 403, 404, unknown host or model).
            EndpointError: refused connection or quota gone.
        """

    def close(self) -> None:
        """Release the server or the connections. Idempotent."""


# --- trials -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """Case x arm x block x repeat: one model call to make. `slot` is the gold's 0-based index, where there is one."""

    case_id: str
    arm: str
    block: int
    repeat: int
    prompt: Prompt
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One finished request as the store keeps it. `key` is content-addressed, `id` is unique to this sending.

    `fault` is a FaultKind value where the call gave nothing to score, `fault_text` the provider's words, keys struck.
    `seconds` is the latency of the answer that came, retries and waits excluded; `retries` counts requests beyond the first.
    """

    id: str
    key: str
    endpoint: str
    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Json]
    repeat: int
    text: str
    finish_reason: str | None
    usage: Usage
    seconds: float
    retries: int
    fault: str | None
    fault_text: str | None
    started_at: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word on one answer."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial with its call and its score. `cached` is true where no request was sent for it."""

    trial: Trial
    call: Call
    verdict: Verdict
    cached: bool
    # Where the gold chunk starts, as share of the prompt's tokens; None without a gold chunk.
    depth: float | None = None
    seq: int = 0


class TrialSink(Protocol):
    """Takes finished trials for keeping; returns at once, commits within 100 ms."""

    def put(self, result: TrialResult) -> None: ...

    def flush(self) -> None:
        """Wait until all that was put is committed."""


class CallCache(Protocol):
    """Finished calls of this run, for resuming."""

    def find(self, key: str) -> Call | None: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a running diagnosis. `planned` is an upper bound, `cost` None where a price is unknown."""

    stage: str
    calls: int = 0
    planned: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    seconds_left: float | None = None
    cost: float | None = None
    note: str = ""


# --- findings -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share or a difference with its 95% interval and n."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What one stage says. `evidence` follows design.md section 8; `cause` is set where the stage lost the answer.

    `also` lists causes seen but not blamed; `advice` says what to do next.
    """

    stage: str
    status: Status
    summary: str
    evidence: Mapping[str, Json] = field(default_factory=dict)
    missing_fields: tuple[str, ...] = ()
    cause: Cause | None = None
    also: tuple[Cause, ...] = ()
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ArmScore:
    """Scored trials of one arm. `n` counts calls, `distinct` observations: identical replies to one prompt are one.

    The interval is Wilson 95% on the observations. `index` and `depth` are None for arms without a gold slot.
    """

    arm: str
    index: int | None
    depth: float | None
    n: int
    correct: int
    distinct: int
    accuracy: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy tried on the case, or named without being tried (`tried` false, figures None)."""

    name: str
    title: str
    tried: bool
    n: int
    before: float | None
    after: float | None
    gain: float | None
    low: float | None
    high: float | None
    note: str = ""


class Embedder(Protocol):
    """Texts to unit vectors, shape (len(texts), dimensions); cosine similarity is a dot product."""

    @property
    def name(self) -> str: ...

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


Ordering = Callable[[Sequence[Chunk], int], Sequence[Chunk]]
Judge = Callable[[Case, str], Verdict]


# --- the bench ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    """Hard caps of a run; None is no cap. `calls` counts HTTP requests, retries included."""

    calls: int | None = 200
    tokens: int | None = None
    money: float | None = None


class TrialRunner(Protocol):
    """Runs trials on the tested model; the only thing that sends calls."""

    @property
    def stopped(self) -> LimError | None:
        """Why no further calls are sent: cancelled, budget spent, endpoint or configuration failed; None while open."""

    def run(self, trials: Sequence[Trial], stage: str) -> Iterator[TrialResult]:
        """Yield results as they finish, each already handed to the sink; stops cleanly when cancelled or out of budget."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a stage may use. Nothing heavy is loaded before it is called for.

    `counter` is the best count for the model that answered the complaint, without opening the tested model.
    `same_model` says whether the tested model is the one that gave the recorded answer; None is unknown.
    """

    open_model: Callable[[], Model]
    open_embedder: Callable[[], Embedder]
    runner: TrialRunner
    counter: Counter
    judge: Judge
    same_model: bool | None
    tested_model: str
    alpha: float = 0.05
    delta: float = 0.2
    seed: int = 0
    max_blocks: int = 64
    max_calls: int | None = 200
    all_stages: bool = False
    cancelled: Callable[[], bool] = lambda: False
    report: Callable[[Progress], None] = lambda progress: None


Stage = Callable[[Case, Bench, Mapping[str, Finding]], Finding]
