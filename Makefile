PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS = $(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 1, 4))')

# pip compiles on one core, and this on all. Some packages hold test files that this Python cannot compile. The folder
# is the shell's, as make splits names at blanks.
COMPILE = $(BIN)/python -m compileall -qq -j 0 -x 'site-packages/.*/tests/' "$$PWD/$(VENV)/lib"

NEW_ENOUGH = import sys; sys.version_info >= (3, 11) or sys.exit("brainfed needs Python 3.11 or newer, found " \
	+ sys.version.split()[0] + "; name another: make install PYTHON=python3.11")
VERSION = -c 'import sys; print(sys.version_info[:2])'
# A Python that the command names makes .venv anew if that is of another version.
ifeq ($(origin PYTHON),command line)
ifneq ($(shell $(PYTHON) $(VERSION)),$(shell $(BIN)/python $(VERSION) 2>/dev/null))
CLEAR := yes
.PHONY: $(VENV)/.installed
endif
endif

.PHONY: install install-sites run test test-full test-rest compatibility lint check format manual docs picture prune clean

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(if $(CLEAR),false,$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null) \
		|| { $(PYTHON) -c '$(NEW_ENOUGH)' && $(PYTHON) -m venv --clear $(VENV); }
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	$(COMPILE) || true
	touch $@

# Flower, for a federation between real sites.
install-sites: install
	$(BIN)/python -m pip install --quiet --requirement requirements-sites.lock

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-compile --requirement requirements-dev.lock
	touch $@

# The main job on the default config: a simulated cohort, results/reports/demo.html.
run: install
	. $(BIN)/activate && snakemake --cores all

# One process more than cores: many tests wait for processes that they start. In the order of the files: sorted by their
# numbers of tests, the longest single test would come last, beside an idle core.
PYTEST = . $(BIN)/activate && pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# What guards every change.
test: $(VENV)/.installed-dev
	$(PYTEST) --tier first

# What guards a release: all tests.
test-full: $(VENV)/.installed-dev
	$(PYTEST)

# The tests of `make test-full` that `make test` leaves out.
test-rest: $(VENV)/.installed-dev
	$(PYTEST) --tier rest

# The smallest study with Python 3.11 to 3.13, and with the newest and the oldest libraries: the table of docs/reference/versions.md.
compatibility: $(VENV)/.installed-dev
	$(BIN)/python tests/compatibility.py

# Style, types, import contracts, workflow lint.
lint: $(VENV)/.installed-dev
	. $(BIN)/activate && ruff check . && ruff format --check . && mypy && lint-imports --no-cache \
		&& snakefmt --check workflow && snakemake --lint

format: $(VENV)/.installed-dev
	. $(BIN)/activate && ruff check --fix . && ruff format . && snakefmt workflow

# config/README.md and the JSON schema, from the settings dataclasses.
manual: install
	$(BIN)/python -m brainfed.configuration.manual

# The documents as a site, _site/docs/README.html; a link that leads nowhere stops it.
docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -W --keep-going -q -c docs . _site

# docs/report.png, the first screen of the demo's report.
picture: run
	$(BIN)/python docs/picture.py

# List results of stages and variants that no config in config/ names any more; `make prune YES=1` removes them.
prune: install
	$(BIN)/python -m brainfed.configuration.prune config/*.yaml $(if $(YES),--yes)

clean:
	rm -rf results logs .snakemake _site
