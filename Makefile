# make run        start Envoy, the gateway and two pods on this machine; REDIS=1 with a Redis
# make test       format, lint, types, and the tests on real parts, but for those on vLLM and Kubernetes
# make test-picker       the tests through Envoy, with the gateway as endpoint picker (docs/endpoint-picker.md)
# make test-agents       Codex, Claude Code, OpenCode and OpenAI's SDKs for Python themselves through the gateway (installs them from npm and PyPI: 440 MB)
# make test-cluster  Kubernetes, Envoy Gateway and Istio themselves, with pods that are processes (says first what it builds; as root)
# make test-memory-store  a million operations on the memory store, of which `make test` makes 50,000
# make vllm-up    start two pods of real vLLM with LMCache on this machine's processors (says first what that takes)
# make test-vllm  the tests on real vLLM, which `make test` leaves out; VLLM_FLEET=file takes the fleet of make vllm-up
# make soak       mixed traffic with faults on real parts for 30 minutes (MINUTES=…); `make test` has 3 minutes of it; then 60 s of a failing Redis Cluster
# make bench-fleet  what a fleet of conversations gets with and without the gateway; the other benches: docs/performance.md

.PHONY: run test test-agents test-cluster test-picker check build install unit integration test-memory-store vllm-up test-vllm bench-ttft bench-gateway bench-sessions bench-kv-events bench-waiting-turns bench-pods bench-fleet bench-abuse soak clean

# Node.js 24, which the packages bring along (docs/adr/0041-node-24-comes-with-the-packages.md).
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

# Tests start some hundred processes of the same files. Node.js's own default folder is open to other users.
test unit integration: export NODE_COMPILE_CACHE := $(CURDIR)/.run/compile-cache

install: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json scripts/node/package.json
	npm ci --no-audit --no-fund
	@touch $@

build: dist/built

# Empty; written last by the build.
dist/built: node_modules/.package-lock.json $(wildcard tsconfig*.json) $(shell find src playground scripts -type f)
	npm run --silent build

run: build
	@node dist/src/main.js run

check: install
	npm run --silent lint
	npm run --silent typecheck

unit: install
	npm run --silent test:unit

integration: build
	npm run --silent test:integration

test: check build
	npm test --silent

test-memory-store: install
	MEMORY_STORE_OPERATIONS=1000000 npm run --silent test:memory-store

test-agents: build
	npm run --silent test:agents

test-cluster: build
	node test/cluster/install/main.ts
	npm run --silent test:cluster

# Left out: what Envoy's own errors, routes and limits of envoy.yaml do, and what a gateway outside of the data path does.
test-picker: build
	PICKER=1 npm run --silent test:picker

vllm-up: build
	@node dist/src/main.js vllm-up

test-vllm: build
	npm run --silent test:vllm

bench-ttft: build
	node bench/ttft.ts --engine $(or $(ENGINE),embedded) $(ARGS)

bench-gateway: build
	cd bench/go-server && go build -buildvcs=false -o ../../.run/go/ ./...
	node bench/gateway/main.ts $(ARGS)

bench-sessions: install
	node --max-old-space-size=8192 --expose-gc bench/sessions/main.ts $(ARGS)

bench-pods: install
	node bench/pods.ts $(ARGS)

soak: build
	MINUTES=$(or $(MINUTES),30) npm run --silent soak
	node bench/soak/cluster-chaos.ts

bench-fleet: build
	node bench/fleet/main.ts --engine $(or $(ENGINE),embedded) $(ARGS)

bench-abuse: build
	node bench/abuse/main.ts $(ARGS)

bench-kv-events: install
	node --expose-gc bench/kv-events.ts

bench-waiting-turns: install
	node bench/waiting-turns.ts $(ARGS)

clean:
	rm -rf dist coverage .run bench/out
