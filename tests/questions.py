"""An invented case for tests of the engine: sixteen offices, one of which answers the question."""

from dataclasses import replace

from lim_core.types import Case, Chunk

MATTERS = (
    "market stalls", "tree felling", "dog licences", "street music", "parking permits", "flood doors", "school crossings",
    "bonfires", "boat moorings", "waste skips", "scaffolding", "street names", "bee keeping", "cemetery plots",
    "allotments", "public benches",
)  # fmt: skip
OFFICERS = (
    "Orla Finch", "Bram Keswick", "Tilda Moran", "Ivo Stanek", "Petra Loew", "Hugo Brandt", "Nils Aker", "Rosa Delmar",
    "Edda Krog", "Yann Perrot", "Mila Soren", "Karl Voss", "Lena Pohl", "Timo Rask", "Ada Vance", "Otto Brill",
)  # fmt: skip


def office_case(n: int = 16, gold: int = 7, **changes: object) -> Case:
    """`n` chunks, the gold at index `gold` of the retrieved order."""
    chunks = tuple(
        Chunk(f"c{i}", f"{officer} signs every decision about {matter} at the Lindholm office.", matter.capitalize())
        for i, (matter, officer) in enumerate(zip(MATTERS[:n], OFFICERS[:n], strict=True))
    )
    question = f"Who signs every decision about {MATTERS[gold]}?"
    return replace(
        Case("offices", question, chunks, answers=(OFFICERS[gold],), gold_ids=(f"c{gold}",)),
        **changes,  # type: ignore[arg-type]
    )
