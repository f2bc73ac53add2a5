# Entry point for all tasks. Every target installs what it needs, also on a fresh checkout.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
export NODE_OPTIONS := --disable-warning=ExperimentalWarning
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help up restart stop build pack image base push chart push-chart release-check test test-unit soak check types lint arrows exports ambient unused locked licensed generated generated-manifests generated-vim25 generated-config generated-api generated-settings generated-argocd generated-pages format generate simulate mutants bench assets lock audit licences sbom newcomer clean

INSTALLED := node_modules/.package-lock.json
TESTBED := packages/testbed/src
# The simulation uses all cores, so parallel garbage collection only competes with it (scenario vm: 130 runs/s with it, 160 without).
SIMULATING := --single-threaded-gc

# Programs that tests start load compiled code: starting the operator takes 0.3 s of CPU instead of 0.8 s.
test soak mutants up: export NODE_COMPILE_CACHE := $(CURDIR)/node_modules/.cache/compiled

help: ## Lists the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1|/' | column -t -s '|'

up: $(INSTALLED) ## Runs all parts and the operator in the foreground; PORTS=<first port> sets other ports
	@node $(TESTBED)/up/main.ts

restart: $(INSTALLED) ## Restarts a part of the running `make up`: PART=operator
	@node $(TESTBED)/up/send-request.ts restart $(PART)

stop: $(INSTALLED) ## Stops a part of the running `make up` until `make restart`: PART=cloud
	@node $(TESTBED)/up/send-request.ts stop $(PART)

build: $(INSTALLED) ## Writes the packages as they are published to packages/*/dist: compiled libraries, bundled programs; REPOSITORY=<owner/name> names the repository on GitHub
	@node tools/build/main.ts

pack: build ## Packs them with npm into dist/
	@node tools/build/pack-main.ts

image: build ## Writes the operator's image to dist/vmwright-image.tar (OCI layout); BASE=<reference or OCI layout folder> sets the base image
	@node tools/image/main.ts

base: $(INSTALLED) ## Prints the reference of the base image with the digest that its tag has now
	@node tools/image/base-main.ts

chart: $(INSTALLED) ## Writes the Helm chart to dist/vmwright-<version>.tgz; REPOSITORY=<owner/name> sets the image of its registry on GitHub
	@node tools/chart/main.ts

# The release workflow runs these three with credentials, or before anything else: they install no npm packages and run with any Node 24.
push: ## Pushes the image that `make image` wrote: IMAGE=<reference>; prints the reference with the digest
	@node tools/image/push-main.ts

push-chart: ## Pushes the chart that `make chart` wrote: CHARTS=oci://<registry>/<path>; prints the reference with the digest
	@node tools/chart/push-main.ts

release-check: ## Fails unless packages, chart, manifests and changelog have the version of TAG=v<version>
	@node tools/release/check-main.ts

test: assets ## Runs all tests, or those that match ONLY=<path or name>
	@vitest run $(ONLY)

test-unit: $(INSTALLED) ## Runs the tests that start no other process
	@UNIT=1 vitest run $(ONLY)

soak: assets ## Runs the tests with long chaos runs and many seeds; ONLY=<path or name> for some
	@SOAK=1 vitest run $(ONLY)

check: types lint arrows exports ambient unused locked licensed generated ## Checks types, lint, format, imports, exports, unused code, locked packages and generated files

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

licensed: $(INSTALLED)
	@node tools/supply/licences-main.ts > /dev/null

generated: generated-manifests generated-vim25 generated-config generated-api generated-settings generated-argocd generated-pages

generated-manifests: $(INSTALLED)
	@node $(TESTBED)/manifests/main.ts --check

generated-vim25: $(INSTALLED)
	@node tools/vim25/main.ts --check

generated-config: $(INSTALLED)
	@node tools/config/main.ts --check

generated-api: $(INSTALLED)
	@node tools/docs/api.ts --check

generated-argocd: $(INSTALLED)
	@node tools/argocd/main.ts --check

generated-pages: $(INSTALLED)
	@node tools/docs/kinds.ts --check
	@node tools/docs/security.ts --check
	@node tools/docs/performance.ts --check
	@node tools/docs/metrics.ts --check

generated-settings: $(INSTALLED)
	@node tools/docs/configuration.ts --check

format: $(INSTALLED) ## Formats the code and applies safe lint fixes
	@biome check --write .

generate: $(INSTALLED) ## Regenerates the generated files
	@node $(TESTBED)/manifests/main.ts
	@node tools/vim25/main.ts
	@node tools/config/main.ts
	@node tools/docs/api.ts
	@node tools/docs/configuration.ts
	@node tools/argocd/main.ts
	@node tools/docs/kinds.ts
	@node tools/docs/security.ts
	@node tools/docs/performance.ts
	@node tools/docs/metrics.ts

simulate: $(INSTALLED) ## Histories of the real code in the simulated world; SEEDS=, MINUTES=, SCENARIO=, or SEED= for the story of one (SHRINK=1: a short one)
	@node $(SIMULATING) packages/simulation/src/main.ts

mutants: $(INSTALLED) ## Check that the simulation finds every mutant; ONLY=<part of a name> for some
	@node $(SIMULATING) packages/simulation/src/mutants/main.ts

bench: assets ## Runs all benchmarks, or ONLY=<name>, or PART=<name> of it
	@node bench/main.ts $(ONLY) $(PART)

assets: $(INSTALLED) ## Downloads or builds the testbed's programs if needed
	@node $(TESTBED)/assets/main.ts

lock: ## Updates package-lock.json for all platforms
	npm install --package-lock-only --omit-lockfile-registry-resolved
	node tools/lock/check.mjs

audit: $(INSTALLED) ## Fails if a locked package has a known vulnerability of the severity high; asks the registry
	@node tools/supply/audit-main.ts

licences: $(INSTALLED) ## Lists the licences of the packages that ship, and fails if one is unknown or not permissive
	@node tools/supply/licences-main.ts

sbom: $(INSTALLED) ## Writes the software bill of materials of what ships to dist/vmwright.cdx.json (CycloneDX)
	@node tools/supply/sbom-main.ts

newcomer: $(INSTALLED) ## Plays a new user: fresh clone, the quick start of README.md and the tour word for word
	@node tools/newcomer/main.ts

clean: ## Removes installed packages and generated folders, but not the cache of the testbed's programs
	rm -rf node_modules .vmwright .vitest dist packages/*/node_modules packages/*/dist

$(INSTALLED): package.json package-lock.json $(wildcard packages/*/package.json)
	@echo 'Installing packages with npm (about a minute the first time)'
	npm ci --no-audit --no-fund --loglevel=error
	@# npm skips an optional package that it cannot download or verify; the system's Node must not be used instead.
	@test -x node_modules/.bin/node || { rm -f $@; echo "Node for $$(uname -s) $$(uname -m) was not installed: package.json lists no package for this platform, or npm could not download it or verify its hash. Run 'npm ci --loglevel=verbose' for the reason." >&2; exit 1; }
	@touch $@
