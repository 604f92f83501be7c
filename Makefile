# make run and make test are all that a newcomer needs; each installs first what is missing.

RELEASE = SPOOLSHIP_COMMIT=$(shell git rev-parse --short=12 HEAD 2>/dev/null) swift build -c release --static-swift-stdlib --product spoolship \
	-Xswiftc -gnone -Xlinker -s -Xlinker -z -Xlinker now --disable-local-rpath
SOURCES = Package.swift Sources Tests

.PHONY: help build test run bench lint format clean

help: ## list these targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

build: ## build the release binary, build/spoolship
	@scripts/bootstrap build
	@$(RELEASE)
	@mkdir -p build && cp .build/release/spoolship build/spoolship
	@ls -l build/spoolship | awk '{ printf "built build/spoolship, %.1f MB\n", $$5 / 1000000 }'

test: ## lint, build, and run every test
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory lint build
	@scripts/test

run: ## show the agent at work: events in, batches out over TLS, the ledger; ends by itself
	@$(MAKE) --no-print-directory build
	@scripts/demo build/spoolship

bench: ## measure events per CPU-second, memory, bytes; about five minutes
	@scripts/bootstrap bench
	@$(MAKE) --no-print-directory build
	@scripts/bench build/spoolship

lint: ## check format and documentation of the Swift sources
	@scripts/bootstrap build
	@swift format lint --strict --recursive $(SOURCES)

format: ## lay out the Swift sources
	@swift format --in-place --recursive $(SOURCES)

clean: ## remove what was built
	rm -rf .build build
