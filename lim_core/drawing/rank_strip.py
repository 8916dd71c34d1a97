"""The rank strip: which retrieved rank lands in which slot of the prompt under each ordering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lim_core.drawing.figures import THEMED, Chart, Palette, head_rows, lay_out, plain, say_instead
from lim_core.drawing.words import clip
from lim_core.experiments.arrangements import BY_HAND, ranks_by_slot
from lim_core.types import Json

# Orderings that go by more than the rank: without the chunks nobody knows what they do.
BY_CHUNKS = frozenset({"score", "document-order", "chronological", BY_HAND})
# Above this many slots a cell has no room for its rank.
_NUMBERED = 20
_ROW = 46  # pixels
_NONE: Mapping[str, Sequence[int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RankRow:
    """One ordering: the 0-based rank in each slot, None where only the chunks themselves would tell."""

    name: str
    ranks: tuple[int, ...] | None

    @property
    def best(self) -> str:
        """Where the best-ranked chunk lands, slots counted from 1."""
        if not self.ranks:
            return "depends on the chunks"
        slot, last = self.ranks.index(0) + 1, len(self.ranks)
        return "first" if slot == 1 else "last" if slot == last else f"slot {slot} of {last}"


def rank_order(names: Sequence[str], n: int, known: Mapping[str, Sequence[int]] = _NONE) -> tuple[RankRow, ...]:
    """What each ordering does to n chunks; `known` gives the 0-based ranks by slot of those that need the chunks."""
    return tuple(
        RankRow(
            name,
            tuple(known[name]) if name in known else None if name in BY_CHUNKS else ranks_by_slot(name, n),
        )
        for name in names
    )


def rank_strip(
    names: Sequence[str], n: int, known: Mapping[str, Sequence[int]] = _NONE, colours: Palette = THEMED
) -> Chart:
    """Orderings as rows, slots as columns, in each cell the rank counted from 1; the best-ranked chunk stands out.

    So it shows where LangChain's LongContextReorder puts the best chunk: last for an even number, first for an odd one.
    """
    import plotly.graph_objects as go

    rows = rank_order(names, n, known)
    drawn = [(place, row.ranks) for place, row in enumerate(rows) if row.ranks]
    cells = [(place, slot, rank) for place, ranks in drawn for slot, rank in enumerate(ranks)]
    figure = go.Figure()
    figure.add_trace(
        go.Bar(
            orientation="h",
            base=[slot + 0.53 for _, slot, _ in cells],
            x=[0.94 for _ in cells],
            y=[place for place, _, _ in cells],
            width=0.44,
            offset=0.5,
            marker={
                "color": colours.accent,
                "opacity": [_strength(rank, n) for _, _, rank in cells],
                "line": {"color": colours.accent, "width": 1},
            },
            text=["" if n > _NUMBERED else str(rank + 1) if rank else "<b>1</b>" for _, _, rank in cells],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"size": 12, "color": [colours.ink if rank else colours.on_accent for _, _, rank in cells]},
            constraintext="none",
            customdata=[[plain(rows[place].name), slot + 1, rank + 1] for place, slot, rank in cells],
            hovertemplate="%{customdata[0]}: slot %{customdata[1]} holds rank %{customdata[2]}<extra></extra>",
        )
    )
    head_rows(figure, [f"{plain(row.name, 30)}: best chunk {row.best}" for row in rows], colours)
    lay_out(figure, 52 + _ROW * max(1, len(rows)), top=4)
    every = max(1, -(-n // 10))
    figure.update_xaxes(
        range=[0.4, n + 0.6],
        tickvals=list(range(1, n + 1, every)),
        title_text="slot in the prompt",
        showgrid=False,
        zeroline=False,
    )
    if not rows:
        say_instead(figure, "No ordering is chosen.", colours)
    said = "; ".join(f"{clip(row.name, 40)}: best chunk {row.best}" for row in rows)
    return Chart(figure, f"Rank of the chunk in each of {n} slots under each ordering. {said or 'None'}.")


def rank_rows(names: Sequence[str], n: int, known: Mapping[str, Sequence[int]] = _NONE) -> list[dict[str, Json]]:
    """The rank in each slot, both counted from 1, one row an ordering."""
    return [
        {
            "ordering": row.name,
            "best chunk": row.best,
            **{f"slot {slot + 1}": rank + 1 for slot, rank in enumerate(row.ranks or ())},
        }
        for row in rank_order(names, n, known)
    ]


def _strength(rank: int, n: int) -> float:
    """How strongly a rank is shaded: the best in full, the others from half to almost nothing, so that text stays legible."""
    return 0.95 if rank == 0 else 0.04 + 0.46 * (1 - rank / max(1, n - 1)) ** 1.3
