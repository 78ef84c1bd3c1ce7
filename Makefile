# The tools have a module of their own: their 200 dependencies are none of the gateway's.
TOOL      = go tool -modfile=tools/go.mod
VERSION   = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
FUZZTIME  = 30s
BENCHTIME = 1s
TESTFLAGS =
BENCHFLAGS =
MATRIX    = docs/conformance.md
GATEWAY_SOAK ?= 10m
# What is compiled does not depend on the folder: a fresh clone finds it in the build cache, and what is released shares
# it with lint and with what is measured.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath
# MCP servers from npm: the three with the most downloads of those that run commands over SSH.
PEERS = ssh-mcp@2.11.0 mcp-ssh-manager@3.8.5 @marian-craciunescu/ssh-mcp-server-secured@1.0.23

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: ## bin/gateway, a static binary
	CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/gateway ./cmd/gateway

.PHONY: deps
deps: ## install the servers and shells that the tests need, or say which
	@scripts/test-deps

# Two packages at a time: half of the time, tests wait. More would share the processors with others, and tests hold the
# product to its deadlines. What takes longest begins first, so that it does not end alone.
LONGEST = ./integration ./session ./transport/ssh ./daemon ./cmd/gateway

.PHONY: test
test: deps ## all tests, with the race detector, against real servers
	GWTEST_REQUIRE_SSHD=1 GORACE=atexit_sleep_ms=0 go test -race -p 2 -parallel $$(scripts/side-by-side 4 2) -timeout 60m -skip '$(ALONE)' $(TESTFLAGS) $(LONGEST) ./...
	@$(MAKE) --no-print-directory conformance MATRIX=bin/conformance.md

# Alone, as it is released and without the race detector: cases have deadlines, and each shell on each machine takes its
# time.
ALONE = ^(TestConformance|TestB50LongestText)$$

.PHONY: conformance
conformance: deps ## the conformance matrix: every shell on every transport
	@mkdir -p $(dir $(MATRIX))
	GWTEST_REQUIRE_SSHD=1 GATEWAY_CONFORMANCE_MATRIX=$(abspath $(MATRIX)) CGO_ENABLED=0 go test $(TESTFLAGS) -count 1 -parallel $$(scripts/side-by-side 10 4) -timeout 60m -run '$(ALONE)' ./integration; \
		status=$$?; sed '/^## Cases/,$$d' $(MATRIX); exit $$status

.PHONY: microbench
microbench: deps ## all benchmarks of Go packages, BENCHTIME=1s each
	GWTEST_REQUIRE_SSHD=1 go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n 1 dirname | sort -u)

.PHONY: bench
bench: deps build ## side by side with what others use: bench/results, README's excerpt; BENCHFLAGS=-quick tries it
	@scripts/bench-deps bin/peers $(PEERS)
	CGO_ENABLED=0 go build -o bin/bench ./bench
	bin/bench -readme README.md $(BENCHFLAGS)

.PHONY: bench-check
bench-check: deps ## counts of a command (allocations, system calls, bytes, round trips) against bench/baseline.json; RENEW=1 writes it
	CGO_ENABLED=0 go build -o bin/bench ./bench
	bin/bench -check bench/baseline.json $(if $(RENEW),-renew)

.PHONY: fuzz
fuzz: ## all fuzz targets, FUZZTIME=30s each
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file target; do \
		set -x; go test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s "$${file%/*}" || exit; { set +x; } 2>/dev/null; \
	done

.PHONY: soak
soak: deps ## random commands with a known outcome, kills, and the long limits, GATEWAY_SOAK=10m
	GWTEST_REQUIRE_SSHD=1 GORACE=atexit_sleep_ms=0 GATEWAY_SOAK=$(GATEWAY_SOAK) go test -race -timeout 3h -count=1 -v \
		-run 'TestSoak|TestKilled|TestHundredSessions|TestFloodIsBounded|TestOneLongLine|TestSessionsAtOnce|TestNothingGrows|TestSessionIsAScript|TestTransferCut' $(TESTFLAGS) ./integration

INSPECTOR = @modelcontextprotocol/inspector@1.0.3

.PHONY: mcp-inspector
mcp-inspector: deps ## the official MCP inspector (npm) runs a story over stdio and HTTP, 4 minutes
	npm install --prefix bin/inspector --no-audit --no-fund --no-save --ignore-scripts $(INSPECTOR)
	GWTEST_REQUIRE_SSHD=1 GATEWAY_INSPECTOR=$(CURDIR)/bin/inspector/node_modules/@modelcontextprotocol/inspector/cli/build/cli.js \
		go test -tags npm -count 1 -timeout 10m -v -run '^TestInspector$$' ./integration

.PHONY: mcp-compare
mcp-compare: deps ## three MCP servers for SSH (npm) and ours on the same stories, 5 minutes; writes docs/mcp-compare.md
	npm install --prefix bin/peers --no-audit --no-fund --no-save --ignore-scripts $(PEERS)
	GWTEST_REQUIRE_SSHD=1 GATEWAY_PEERS=$(CURDIR)/bin/peers GATEWAY_COMPARE_DOC=$(CURDIR)/docs/mcp-compare.md GATEWAY_COMPARE_README=$(CURDIR)/README.md \
		go test -tags npm -count 1 -timeout 10m -v -run '^TestCompare$$' ./compare

# As released, like the conformance cases and bench-check: what is compiled for one is compiled for all.
.PHONY: lint
lint: export CGO_ENABLED = 0
lint: ## gofumpt and golangci-lint, go vet among it (its first build takes a minute)
	@echo 'gofumpt -d .'; diff=$$($(TOOL) gofumpt -d .) && test -z "$$diff" || { echo "$$diff"; echo 'lint: not formatted; run make format'; exit 1; }
	$(TOOL) golangci-lint run ./...

.PHONY: format
format: ## gofumpt -w
	$(TOOL) gofumpt -w .

.PHONY: vuln
vuln: ## known vulnerabilities in what the gateway calls; asks the public database
	$(TOOL) govulncheck ./...

# Nobody runs what comes of it: it is not optimized, and of vet, which lint runs, only that the tests compile is wanted.
.PHONY: cross
cross: ## programs and tests compile for all platforms
	@for platform in $(PLATFORMS); do \
		echo "compile for $$platform"; export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		go build -gcflags='all=-N -l' ./... && go vet -gcflags='all=-N -l' -buildtag ./... || exit; \
	done

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin
	find . -name '*.test' -type f -delete
