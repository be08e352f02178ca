# make run    start Envoy, the gateway and two pods on this machine
# make test   everything: format, lint, types, and every test on real parts

.PHONY: run test check build install engine-runtime unit integration bench-ttft clean

install: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json
	# Not `npm ci`: the lockfile names no package that only other platforms need, and it would miss them.
	npm install --no-save --no-audit --no-fund
	@touch $@

engine-runtime: install
	node engine-runtime/install.mjs

build: install
	npm run --silent build

run: build engine-runtime
	@node dist/main.js run

check: install
	npm run --silent lint
	npm run --silent typecheck

unit: install
	npm run --silent test:unit

integration: build engine-runtime
	npm run --silent test:integration

test: check unit integration

bench-ttft: build engine-runtime
	npx tsc -p bench/tsconfig.json && node .run/bench/bench/ttft.js

clean:
	rm -rf dist coverage .run bench/out
