# The front door. Every target sets up what it needs, on a fresh checkout too.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
export NODE_OPTIONS := --disable-warning=ExperimentalWarning
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up restart stop test check types lint arrows exports ambient unused locked generated generated-manifests generated-vim25 generated-config generated-api format generate simulate planted bench assets lock clean

INSTALLED := node_modules/.package-lock.json
TESTBED := packages/testbed/src
# A thread a core is at work: helpers that collect garbage would only take turns with them (of vm, 130 histories a second; 160 so).
SIMULATING := --single-threaded-gc

help: ## What there is
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1|/' | column -t -s '|'

up: $(INSTALLED) ## All parts and the operator, in the foreground; PORTS=<first port> for other ports
	@node $(TESTBED)/up/main.ts

restart: $(INSTALLED) ## Restart a part of the running `make up`: PART=operator
	@node $(TESTBED)/up/ask.ts restart $(PART)

stop: $(INSTALLED) ## Stop a part of the running `make up` until it is restarted: PART=cloud
	@node $(TESTBED)/up/ask.ts stop $(PART)

test: assets ## All tests; ONLY=<path or name> for some
	@vitest run $(ONLY)

check: types lint arrows exports ambient unused locked generated ## Types, lint, format, imports, exports, unused code, locked packages, generated files

types: $(INSTALLED)
	@tsc -p .

lint: $(INSTALLED)
	@biome check --error-on-warnings .

arrows: $(INSTALLED)
	@node tools/check/arrows.ts

exports: $(INSTALLED)
	@node tools/check/exports.ts

ambient: $(INSTALLED)
	@node tools/check/ambient.ts

unused: $(INSTALLED)
	@knip

locked:
	@node tools/lock/check.mjs

generated: generated-manifests generated-vim25 generated-config generated-api

generated-manifests: $(INSTALLED)
	@node $(TESTBED)/manifests/main.ts --check

generated-vim25: $(INSTALLED)
	@node tools/vim25/main.ts --check

generated-config: $(INSTALLED)
	@node tools/config/main.ts --check

generated-api: $(INSTALLED)
	@node tools/docs/api.ts --check

format: $(INSTALLED) ## Format and mend what can be mended
	@biome check --write .

generate: $(INSTALLED) ## Write the generated files anew
	@node $(TESTBED)/manifests/main.ts
	@node tools/vim25/main.ts
	@node tools/config/main.ts
	@node tools/docs/api.ts

simulate: $(INSTALLED) ## Histories of the real code in the simulated world; SEEDS=, MINUTES=, SCENARIO=, or SEED= for the story of one (SHRINK=1: a short one)
	@node $(SIMULATING) packages/simulation/src/main.ts

planted: $(INSTALLED) ## Bugs put in on purpose, each to be found by the simulation; ONLY=<part of a name> for some
	@node $(SIMULATING) packages/simulation/src/planted/main.ts

bench: assets ## Benchmarks against the bars; ONLY=<name> for one, PART=<name> for a part of it
	@node bench/main.ts $(ONLY) $(PART)

assets: $(INSTALLED) ## The testbed's programs: found, downloaded or built
	@node $(TESTBED)/assets/main.ts

lock: ## Write package-lock.json again, for all platforms
	npm install --package-lock-only --omit-lockfile-registry-resolved
	node tools/lock/check.mjs

clean: ## Remove what was installed and written here; the cache of programs stays
	rm -rf node_modules .vmwright .vitest packages/*/node_modules

$(INSTALLED): package.json package-lock.json $(wildcard packages/*/package.json)
	@echo 'Installing packages with npm (about a minute the first time)'
	npm ci --no-audit --no-fund --loglevel=error
	@# npm passes over an optional package that it cannot download or verify; an older Node of the system must not stand in.
	@test -x node_modules/.bin/node || { rm -f $@; echo "Node for $$(uname -s) $$(uname -m) was not installed: package.json lists no package for this platform, or npm could not download it or verify its hash. Run 'npm ci --loglevel=verbose' for the reason." >&2; exit 1; }
	@touch $@
