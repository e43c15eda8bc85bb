# `make demo` runs the main job, `make test` the quick checks, `make test-slow` the others.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Every worker and every process that a test starts imports what another has compiled to bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test quick test-slow lint imports types check-js format docs docs-check evidence bench figures clean

demo: $(READY)
	$(BIN)/neuralrace run examples/studies/demo.toml --out out/demo

# Types take a minute of one process, and are checked beside the tests.
test: imports
	$(MAKE) --no-print-directory -j 2 types quick

quick: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder \
		-m "not slow and not cluster and not browser"

# What takes long, and what needs worker processes or a browser. A browser is another program with a
# will of its own: its tests that failed are run once more, alone, and listed.
test-slow: $(READY) .venv/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "(slow or cluster) and not browser"
	$(BIN)/pytest -n 2 -m browser || $(BIN)/pytest -v -m browser --last-failed --last-failed-no-failures none

lint: imports types

imports: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(READY)
	$(BIN)/basedpyright

# Types of the explorer's page. The compiler comes through npm; where it cannot be had, this says so.
TSC := npx --yes --package typescript@5.9.3 tsc
check-js:
	@if ! $(TSC) --version >/dev/null 2>&1; then echo "skipped: npm or its TypeScript cannot be had here"; \
		else $(TSC) -p tools/jsconfig.json && echo "types of the page: no error"; fi

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The documentation as a site, in out/site/index.html; needs no network.
docs: .venv/.docs
	$(BIN)/python -m docs.api
	$(BIN)/python -m docs.gallery
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

# Everything that can be wrong with the documentation: the site and its links, spelling, examples in
# docstrings, and what the pages print. Links that lead out are listed, not opened.
docs-check: docs
	$(BIN)/python -m tools.links out/site
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md RELEASING.md docs src papers examples
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/test_site.py tests/test_docs.py tests/test_house.py src papers

.venv/.docs: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch .venv/.docs

# Every claim and promise at full size; writes the numbers and pages of docs/evidence.
evidence: $(READY)
	$(BIN)/python -m evidence --full

# Ratios of running times alone, each pair side by side in one run; for a quiet machine.
bench: $(READY)
	$(BIN)/python -m evidence --timing --full

# Every figure of the papers, with a gallery in out/figures, and every picture of the documentation,
# whose own gallery is docs/gallery.md.
figures: $(READY)
	$(BIN)/python -m papers reproduce all --out out/figures
	$(BIN)/python -m docs.gallery --from out/figures --examples
	$(BIN)/python -m docs.figures

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,study,explore]'
	touch $(READY)

clean:
	rm -rf .venv out
