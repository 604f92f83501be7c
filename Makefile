# make run and make test are all that a newcomer needs; each installs first what is missing.

# The toolchain's own linker packs relative relocations (Debian 12 and later load them) and exports nothing. Each function has a
# section of its own, so that what nobody calls is left out, and only one of several equal functions is kept. CBuild has what is wrapped.
# Swift's functions let no exception of C++ through, so their tables for unwinding are for debuggers only: they go into spoolship.debug.
# scripts/link clears what would keep functions that nobody calls, and leaves out the Swift runtime's tables for unwinding.
# sections.ld keeps constants where nothing can write. function-order puts what an idle agent uses side by side (scripts/function-order).
# docs/contributing/what-is-left-out-of-the-binary.md says what each of these saves, and costs.
# It is built in a directory of its own, so that its build and the tests' do not wait for each other. Side by side they are no faster: two
# processors take 15 minutes for both, and 12 and a half one after the other.
BINARY = .build/binary
RELEASE = SPOOLSHIP_RE2=$(RE2) SPOOLSHIP_LINKER=scripts/link SPOOLSHIP_COMMIT=$(shell git rev-parse --short=12 HEAD 2>/dev/null) swift build --scratch-path $(BINARY) -c release --static-swift-stdlib --product spoolship \
	-Xlinker -z -Xlinker now -Xlinker --build-id=sha1 --disable-local-rpath -Xswiftc -use-ld=lld \
	-Xlinker -z -Xlinker pack-relative-relocs -Xlinker --version-script=packaging/exports.map -Xlinker --export-dynamic-symbol=_gnutls_global_init_skip -Xlinker -T -Xlinker packaging/sections.ld \
	-Xswiftc -Xfrontend -Xswiftc -function-sections -Xswiftc -Xllvm -Xswiftc -force-attribute=nounwind \
	-Xlinker --symbol-ordering-file=packaging/function-order -Xlinker --no-warn-symbol-ordering \
	-Xlinker --wrap=_swift_stdlib_getScalarName -Xlinker --icf=all $(FLAGS)
# RE2 has another soname in each Debian and Ubuntu. Where its archive needs no other library (Debian 12) it goes into the binary, and
# one package serves the newer systems too: docs/contributing/one-package-for-newer-systems.md.
RE2 = $(shell pkg-config --static --libs re2 | grep -q absl && echo re2 || echo :libre2.a)
# Where libswiftCore.a is.
RUNTIME = $(shell swiftc -print-target-info | sed -nE 's/.*"runtimeResourcePath": "(.*)".*/\1_static\/linux/p')
SOURCES = Package.swift Sources Tests Benchmarks/Sources

.PHONY: help build binary test bundle deb life image faults run bench latency hostile storm lint format clean

help: ## list these targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

build: ## build the release binary, build/spoolship, and its debug symbols, build/spoolship.debug
	@scripts/bootstrap build
	@$(RELEASE)
	@mkdir -p build && objcopy --only-keep-debug --compress-debug-sections $(BINARY)/release/spoolship build/spoolship.debug
	@strip --strip-unneeded --remove-section=.comment -o build/spoolship $(BINARY)/release/spoolship
	@! grep -q RegexParser build/spoolship || { echo "build: the library of regular expressions is in the binary, 1.5 MB: who searches a text for a text?" >&2; exit 1; }
	@scripts/folding $(BINARY)/release/spoolship $(BINARY)/release/spoolship.product/Objects.LinkFileList
	@scripts/function-order --check $(BINARY)/release/spoolship
	@nm -D build/spoolship | grep -q _gnutls_global_init_skip || { echo "build: GnuTLS sets itself up in each agent: Sources/CShims/CBuild/gnutls.c is not exported" >&2; exit 1; }
	@scripts/lookups $(BINARY)/release/spoolship $(BINARY)/release/spoolship.product/Objects.LinkFileList $(RUNTIME)
	@[ "$(RE2)" = re2 ] || ! objdump -p build/spoolship | grep 'NEEDED *libre2' || { echo "build: RE2 is not in the binary: make clean" >&2; exit 1; }
	@ls -l build/spoolship | awk '{ printf "built build/spoolship, %.1f MB\n", $$5 / 1000000 }'

binary:
	@$(RELEASE)

test: ## lint, build, and run every test
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory build bundle
	@scripts/test

bundle:
	@swift build --build-tests

deb: ## make the Debian package, build/spoolship_VERSION_ARCH.deb, and check it with lintian; ARCH=arm64 on any machine, needs root
ifeq ($(ARCH),arm64)
	@scripts/arm64-deb
else
	@scripts/bootstrap package
	@$(MAKE) --no-print-directory build
	@rm -f build/*.deb
	@scripts/deb build/spoolship --symbols build/spoolship.debug
	@lintian --fail-on error,warning build/spoolship_*.deb build/spoolship-dbgsym_*.deb
endif

life: ## test the package in a clean Debian, or SUITE=trixie: install, deliver, alert, upgrade, purge; needs root
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory deb
	@scripts/life-test $(if $(SUITE),--suite $(SUITE))

image: ## make an OCI image of the package, without Docker, and run the agent in it; ARCH=arm64: one image for both; needs root
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory ARCH= deb
	@$(if $(filter arm64,$(ARCH)),scripts/arm64-deb)
	@rm -f build/*.oci.tar
	@scripts/image
	@scripts/image-test --image build/*.oci.tar
	@$(if $(filter arm64,$(ARCH)),scripts/image-test --image build/*.oci.tar --architecture arm64)

faults: ## cause some eighty faults on the packaged agent and check that each is reported: docs/contributing/faults.md; needs root
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory deb
	@scripts/fault-table --systemd --write

run: ## demonstrate the agent: events in, batches out over TLS, the ledger; ends by itself
	@$(MAKE) --no-print-directory build
	@scripts/demo build/spoolship

bench: ## measure events and drop files per CPU-second, memory and bytes; about six minutes
	@scripts/bootstrap bench
	@$(MAKE) --no-print-directory build
	@scripts/bench build/spoolship

latency: ## measure the time from a written line to the receiver
	@scripts/bootstrap bench
	@$(MAKE) --no-print-directory build
	@python3 Benchmarks/latency.py build/spoolship

hostile: ## run hostile users against the agent beside honest apps for SECONDS=60, or SEED=…; WAY=random, WAY=bounds; needs root
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory build
	@python3 Benchmarks/hostile build/spoolship $(if $(WAY),--$(WAY)) --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(if $(WITHOUT),--without $(WITHOUT)) $(if $(ONLY),--only $(ONLY)) $(if $(EVENTS),--events $(EVENTS)) $(if $(SPOOL),--spool $(SPOOL))

storm: ## expose the agent to everything at once for SECONDS=180, or SEED=…: kills, reloads, full disks, bad servers; needs root
	@scripts/bootstrap test
	@$(MAKE) --no-print-directory build
	@python3 Benchmarks/storm build/spoolship --seconds $(or $(SECONDS),180) $(if $(SEED),--seed $(SEED)) $(if $(RECORDS),--records) $(if $(REFUSING),--refusing)

lint: ## check format and documentation of the Swift sources
	@scripts/bootstrap build
	@swift format lint --strict --recursive $(SOURCES)
	@scripts/lint-numbers
	@scripts/lint-shape
	@scripts/lint-docs
	@scripts/lint-words
	@scripts/messages --check
	@scripts/fault-table --check

format: ## format the Swift sources
	@swift format --in-place --recursive $(SOURCES)

clean: ## remove all build products
	rm -rf .build build
