"""A remedy as code to copy: plain Python, LangChain, LlamaIndex, Haystack.

A remedy's name is a chain of steps joined by `+`, such as `rerank:bm25+k:5` or `rerank:embedding+ordering:edges`. The steps
become one plain function over texts, best first; each framework gets a thin adapter around that same function, so that what
was tried on the case is what is shipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent, indent


@dataclass(frozen=True, slots=True)
class Fix:
    """Code for one framework, by its title."""

    title: str
    code: str


_BM25 = '''
def best_first(question, texts):
    """Indices of `texts` by BM25, best first. pip install bm25s"""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
    scores = index.get_scores(bm25s.tokenize(question, stopwords=None, return_ids=False, show_progress=False)[0])
    return sorted(range(len(texts)), key=lambda i: -scores[i])
'''

_EMBEDDING = '''
def best_first(question, texts):
    """Indices of `texts` by cosine similarity, best first. pip install sentence-transformers"""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer("sentence-transformers/all-MiniLM-L6-v2")  # load it once in production
    vectors = model.encode([question, *texts], normalize_embeddings=True)
    scores = vectors[1:] @ vectors[0]
    return sorted(range(len(texts)), key=lambda i: -scores[i])
'''

_AS_GIVEN = '''
def best_first(question, texts):
    """The retriever's own order."""
    return list(range(len(texts)))
'''

_ORDERS: dict[str, tuple[str, str]] = {
    "edges": ("order = order[0::2] + order[1::2][::-1]", "best at both edges: ranks A C E D B"),
    "reverse": ("order = order[::-1]", "best last, next to the question"),
    "as-retrieved": ("order = sorted(order)", "back in the retriever's order"),
}

_TEMPLATES: dict[str, str] = {
    "question-twice": 'prompt = f"{task}\\n\\nQuestion: {question}\\n\\n{documents}\\n\\nQuestion: {question}\\nAnswer:"',
    "every-passage": 'task += " Read every document before you answer; the answer may stand in any of them."',
    "citations": 'task += " After the answer, name the document that holds it in square brackets, like [2]."',
}


def code_for(name: str) -> tuple[Fix, ...]:
    """Code for the remedy `name` in each framework; empty where the name has a step that no code is known for."""
    plain = _plain(name)
    if plain is None:
        return ()
    if name.startswith("template:"):
        return (Fix("Prompt template", plain),)
    return tuple(Fix(title, wrap(plain)) for title, wrap in _FRAMEWORKS)


def _plain(name: str) -> str | None:
    if name.startswith("template:"):
        return _TEMPLATES.get(name.removeprefix("template:"))
    ranker, lines = _AS_GIVEN, ["order = best_first(question, texts)"]
    for step in name.split("+"):
        kind, _, value = step.partition(":")
        if kind == "rerank" and value in ("bm25", "embedding"):
            ranker = _BM25 if value == "bm25" else _EMBEDDING
        elif kind == "k" and value.isdecimal():
            lines.append(f"order = order[:{int(value)}]  # keep the best {int(value)}")
        elif kind in ("ordering", "order") and value in _ORDERS:
            code, why = _ORDERS[value]
            lines.append(f"{code}  # {why}")
        elif step in _ORDERS:
            code, why = _ORDERS[step]
            lines.append(f"{code}  # {why}")
        else:
            return None
    body = indent("\n".join([*lines, "return order"]), "    ")
    head = f'def arrange(question, texts):\n    """Indices of `texts` in the order to show them: {name}."""\n'
    return f"{ranker.strip()}\n\n\n{head}{body}\n"


def _python(plain: str) -> str:
    return plain + dedent("""

        # texts = [chunk.text for chunk in retrieved], best first
        chunks = [retrieved[i] for i in arrange(question, [chunk.text for chunk in retrieved])]
        """)


def _langchain(plain: str) -> str:
    return plain + dedent("""

        from langchain_core.runnables import RunnableLambda


        def arrange_documents(inputs):
            documents = inputs["documents"]  # list[Document], best first
            return [documents[i] for i in arrange(inputs["question"], [d.page_content for d in documents])]


        # the question is passed on beside the documents, for the order depends on it
        documents = {"question": lambda q: q, "documents": retriever} | RunnableLambda(arrange_documents)
        """)


def _llama_index(plain: str) -> str:
    return plain + dedent("""

        from llama_index.core.postprocessor.types import BaseNodePostprocessor


        class Arrange(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                question = query_bundle.query_str if query_bundle else ""
                return [nodes[i] for i in arrange(question, [n.node.get_content() for n in nodes])]


        query_engine = index.as_query_engine(node_postprocessors=[Arrange()])
        """)


def _haystack(plain: str) -> str:
    return plain + dedent("""

        from haystack import Document, component


        @component
        class Arrange:
            @component.output_types(documents=list[Document])
            def run(self, query: str, documents: list[Document]):
                return {"documents": [documents[i] for i in arrange(query, [d.content or "" for d in documents])]}


        pipeline.add_component("arrange", Arrange())  # between the retriever and the prompt builder
        """)


_FRAMEWORKS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("Plain Python", _python),
    ("LangChain", _langchain),
    ("LlamaIndex", _llama_index),
    ("Haystack", _haystack),
)
