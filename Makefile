# `make run` starts the app, `make test` runs every check; both set up what they need and work offline afterwards.
PY ?= python3.11
VENV ?= .venv
BIN = $(VENV)/bin
PORT ?= 8501
export HF_HUB_OFFLINE = 1
export TOKENIZERS_PARALLELISM = false

.PHONY: run test lint types imports unit browser bench chromium clean

run: $(VENV)/.run
	$(BIN)/python -m streamlit run app.py --server.port $(PORT)

test: lint types imports unit browser

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

# Two workers, but one at a time where the embedded model computes on every core.
unit: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal -m "not browser and not model"
	$(BIN)/pytest -m "model and not browser"

browser: $(VENV)/.dev chromium
	$(BIN)/pytest -m browser

# Every script prints its figures; none of them is a test. large_store writes 4 GB and is run by hand.
bench: $(VENV)/.dev
	for script in $(filter-out benchmarks/large_store.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

chromium:
	@command -v chromium >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; }

$(BIN)/python:
	@command -v $(PY) >/dev/null && $(PY) -m venv $(VENV) || python3 -m venv $(VENV)

# torch first and by itself: with it in place, nothing asks for a build with GPU support.
$(VENV)/.run: requirements.txt | $(BIN)/python
	$(BIN)/pip install --quiet torch==2.13.0
	$(BIN)/pip install --quiet -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.run
	$(BIN)/pip install --quiet -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
