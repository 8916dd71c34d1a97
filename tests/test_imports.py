"""Importing the core costs little and reaches no web, database or model library; pages open the shell first."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {
    "streamlit", "plotly", "pandas", "duckdb", "pyarrow", "openai", "torch", "transformers", "sentence_transformers",
    "xllamacpp", "bm25s",
}  # fmt: skip


def modules(package: str) -> list[str]:
    files = sorted((ROOT / package).rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


CORE = [name for name in modules("lim_core") if not name.startswith("lim_core.ui")]


def loaded_after(imports: list[str]) -> set[str]:
    code = f"import sys, json\nfor name in {imports!r}: __import__(name)\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def test_the_core_imports_nothing_heavy():
    assert len(CORE) > 20
    assert not loaded_after(CORE) & HEAVY


def test_the_package_itself_costs_nothing():
    assert not {"numpy", "scipy"} & loaded_after(["lim_core"])


def test_the_pages_import_no_model_library():
    ui = [name for name in modules("lim_core") if name.startswith("lim_core.ui")]
    assert len(ui) > 3
    assert not loaded_after(ui) & {"torch", "transformers", "sentence_transformers", "xllamacpp", "openai"}


@pytest.mark.parametrize("page", [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))], ids=lambda page: page.name)
def test_every_page_opens_the_shell_first(page):
    tree = ast.parse(page.read_text(encoding="utf-8"))
    body = [
        node
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    first = body[0]
    call = first.value if isinstance(first, ast.Expr | ast.Assign) else None
    assert isinstance(call, ast.Call), f"{page.name} does something before it opens the shell"
    assert ast.unparse(call.func) == "shell.open_page"
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)], "a page holds no class"
    assert len(page.read_text(encoding="utf-8").splitlines()) < 120
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name.startswith("pages")]
