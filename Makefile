# make help lists the targets. CI runs .ci/run, which needs none of this.
GO ?= go
BIN := $(CURDIR)/.bin

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## holdfast, holdfast-worker and holdfast-starter into the current folder
	$(GO) build -o holdfast ./standalone
	CGO_ENABLED=0 $(GO) build -o holdfast-worker ./worker
	CGO_ENABLED=0 $(GO) build -o holdfast-starter ./starter

.PHONY: demo
demo: ## a crawl that brings its own site and proxies
	$(GO) run ./standalone demo

.PHONY: test
test: ## all tests; on a real Redis too where HOLDFAST_TEST_REDIS names one
	$(GO) test ./...

.PHONY: tools
tools: ## gofumpt, staticcheck and workflowcheck, as tools/go.mod pins them
	$(GO) build -modfile=tools/go.mod -o $(BIN)/ tool

.PHONY: fmt
fmt: tools ## format all Go files
	git ls-files -co --exclude-standard '*.go' | xargs $(BIN)/gofumpt -w

.PHONY: lint
lint: tools ## vet, staticcheck, workflowcheck
	$(GO) vet ./...
	$(BIN)/staticcheck ./...
	$(BIN)/workflowcheck ./...

# Go fuzzes one target a run. FUZZTIME=30s is what a release wants.
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | sed 's/^func //' | sort -u); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
		done; \
	done

.PHONY: ci
ci: ## everything that must hold before a change lands
	.ci/run
