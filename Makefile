.PHONY: help demo test check shuffle explore fmt fuzz campaign bench lock golden

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## The main job from nothing, on this machine
	sh scripts/demo

test: ## Set up, then run everything CI runs
	sh scripts/test

check: ## Everything CI runs, cheapest first (set up by scripts/test)
	sh scripts/check

shuffle: ## The tests with real machines once more, in random order, as root
	.venv/bin/pytest -m sshd

explore: ## What must hold for all inputs, on twenty times as many and never the same ones
	.venv/bin/pytest -n 2 --dist worksteal -m "hypothesis and not sshd" --hypothesis-profile=explore

fmt: ## Format and apply safe fixes
	.venv/bin/ruff format . && .venv/bin/ruff check --fix .

fuzz: ## Fuzz the parsers for ten minutes, or make fuzz FOR=SECONDS
	.venv/bin/python -m tests.fuzz.campaign $(or $(FOR),600)

campaign: ## Cut, kill and pause at every moment, real nodes and a thousand copies: hours, as root
	WLCTL_CAMPAIGN=1 .venv/bin/pytest -v tests/fleet tests/flows tests/simulation

bench: ## Measure against floors and rivals, and print the ratios
	for script in benchmarks/*.py; do echo "== $$script"; .venv/bin/python $$script || exit; done

golden: ## Rewrite the golden sessions, then read the diff
	.venv/bin/pytest -q tests/cli tests/unit --update-golden && git diff --stat

lock: ## Pin the dependencies anew (needs pip-tools)
	pip-compile -q --upgrade --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header -o requirements.txt pyproject.toml
	pip-compile -q --upgrade --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header -o requirements-dev.txt pyproject.toml requirements-dev.in
