"""What one model refuses, learnt from its refusals, so that each is met once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lim_core.types import Json

# These make up the request itself, or ask for a shape of answer that is not read here.
_NOT_PARAMETERS = frozenset({"messages", "model", "stream", "stream_options", "n"})
_OUTPUT_CAPS = ("max_tokens", "max_completion_tokens")
_AT_MOST = re.compile(r"(?:at most|less than or equal to|<=|maximum(?: value)?(?: of| is)?) (\d[\d,]*)", re.I)
# An output cap lower than this leaves no room for an answer: then the prompt does not fit.
_SMALLEST_CAP = 16


@dataclass(slots=True)
class Quirks:
    """Parameters to drop, to rename, and output caps to lower, for one model at one address.

    Kept as long as the model is open; a server restarted with other weights is met afresh. Changed from the loops of
    several runs, each change being one assignment of a whole entry.
    """

    dropped: set[str] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    caps: dict[str, int] = field(default_factory=dict)

    def adapt(self, params: Mapping[str, Json]) -> dict[str, Json]:
        """The parameters as they go over the wire; a parameter of value None is not sent."""
        adapted: dict[str, Json] = {}
        for name, value in params.items():
            name = self.renamed.get(name, name)
            if value is None or name in self.dropped or name in _NOT_PARAMETERS:
                continue
            cap = self.caps.get(name)
            adapted[name] = min(value, cap) if cap is not None and isinstance(value, int) else value
        return adapted

    def learn(self, parameter: str, words: str, sent: Mapping[str, Json]) -> bool:
        """Take in that `parameter`, which was sent, is refused in these words; False where nothing is left to change."""
        if parameter in _OUTPUT_CAPS:
            other = _OUTPUT_CAPS[1 - _OUTPUT_CAPS.index(parameter)]
            most = _AT_MOST.search(words)
            value = sent.get(parameter)
            if most is not None and isinstance(value, int) and value > (cap := int(most[1].replace(",", ""))):
                self.caps[parameter] = cap
                return True
            if other not in self.renamed:
                self.renamed[parameter] = other
                return True
            # Both names refused: the endpoint has its own cap.
            self.renamed.pop(other, None)
            self.dropped.update(_OUTPUT_CAPS)
            return True
        if parameter in sent:
            self.dropped.add(parameter)
            return True
        return False

    def shrink(self, window: int | None, prompt: int | None, sent: Mapping[str, Json]) -> bool:
        """Lower the output cap so that `prompt` tokens and it fit the window; False where the prompt itself does not."""
        if window is None or prompt is None or window - prompt < _SMALLEST_CAP:
            return False
        for name in _OUTPUT_CAPS:
            value = sent.get(name)
            if isinstance(value, int) and value > window - prompt:
                self.caps[name] = window - prompt
                return True
        return False
