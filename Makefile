# quotabench: make help lists the targets. tools/Makefile has those for work on the project's own claims.

GO            ?= go
GOLANGCI      ?= v2.11.4
ACTIONLINT    ?= v1.7.12
GORELEASER    ?= v2.12.5

# How many rounds make flaky runs, and on which packages of which module.
N             ?= 20
PACKAGES      ?= ./...
IN            ?= .

# What runs under the race detector: packages of a module that share memory and start goroutines, in tests at least. Those that
# others call from goroutines are tested by these. Left out are the command line, whose searches run in parallel below
# internal/app, and the clients of Envoy's service, whose library takes longer to compile than all else of that module.
SHARES        := sync\.(Mutex|RWMutex|WaitGroup|Cond|Map)|atomic\.[A-Z]|^[[:space:]]+go[[:space:]]
STARTS        := ^[[:space:]]+go[[:space:]]|\.Go\(|parallel\.[A-Z]|\.ForEach[MS]|measure\.(Run|Measure)\(
OTHERS        := ':!full' ':!tools' ':!adapters' ':!examples' | xargs -n1 dirname | sort -u
NOT_RACED     := ':!cli' ':!stores/ratelimit' ':!strategies/ratelimit'
RACE           = $$({ git grep -lE '$(SHARES)' -- '*.go' ':!*_test.go' $(NOT_RACED) $(OTHERS); git grep -lE '$(STARTS)' -- '*.go' $(NOT_RACED) $(OTHERS); } | \
                   sort | uniq -d | sed 's|^|./|')

# A test that lacks one of these programs, which make deps installs, fails instead of being skipped.
REQUIRE       := QUOTABENCH_REQUIRE=$${QUOTABENCH_REQUIRE-$$($(CURDIR)/.ci/deps names)}

.DEFAULT_GOAL := help
.PHONY: help run build build-full deps deps-all test test-all race long further flaky golden lint bench release publish pages man

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## say in under two minutes which strategy to use for 1,000 requests per hour, on the stores that are here
	$(GO) run ./cmd/quotabench run

# A compiler collects garbage for a quarter of its time, which this saves.
QUICKER       := GOGC=$${GOGC:-400}

build: ## build the command line to bin/quotabench
	$(QUICKER) $(GO) build -o bin/quotabench ./cmd/quotabench

build-full: ## build bin/quotabench-full, which has the clients of etcd, ZooKeeper, NATS and Envoy's rate-limit protocol
	$(QUICKER) $(GO) build -C full -o ../bin/quotabench-full ./cmd/quotabench

deps: ## install what the tests need and is missing: Redis, PostgreSQL and libfaketime
	@.ci/deps

deps-all: ## install all programs of docs/install.md that tests can use, without which they are skipped: servers, Chromium, Node.js, shells
	@.ci/deps all

# Tests are linked without debugging information, and make lint runs go vet: both save a third of the time of a first run.
# Many tests wait for a server, so twice as many packages run at once as there are cores.
# RETRY is a command that runs the tests and repeats those that fail; CI sets it.
RETRY         ?=
GOTEST         = $(REQUIRE) $(QUICKER) $(RETRY) $(GO) test -vet=off -ldflags='-s -w' -timeout 20m -p $$((2 * $$(getconf _NPROCESSORS_ONLN)))

test: ## run the tests on embedded and real stores; 3 minutes, 6 with the first build
	@$(QUICKER) $(GO) list -export -test -deps ./... >/dev/null 2>&1 & .ci/deps && wait # packages are compiled while others are downloaded
	@$(GOTEST) ./...
	@if .ci/deps full; then cd full && $(GOTEST) ./...; fi
	@.ci/deps skipped

# The packages of a module that the race detector leaves out.
REST           = $$({ $(GO) list -f './{{slice .Dir (len .Module.Dir)}}' ./... | sed 's|//*|/|g; s|/$$|/.|'; echo $(RACE) $(RACE) | tr ' ' '\n'; } | sort | uniq -u)

# A program under the race detector waits for a second at its end, for reports of goroutines that go on.
SOON           := GORACE=atexit_sleep_ms=50

# To inline functions takes a compiler a third of its time, which is longer than the tests of race are faster for it.
QUICKLY        := -gcflags='all=-l -dwarf=false'

# Long tests are those that do more with QUOTABENCH_LONG, or that need more programs than make test installs.
LONGER         = QUOTABENCH_LONG=1 $(GOTEST)
TESTED         = $$(git ls-files -- '*_test.go' $(OTHERS) | sed 's|^|./|')
LONG_TESTS     = $$(.ci/long tests $(TESTED))|$$(.ci/deps further tests)
LONG_PACKAGES  = $$({ .ci/long packages $(TESTED); .ci/deps further packages; } | sort -u)

test-all: test race long ## run all tests, long ones too, and those of concurrent code with the race detector; 15 minutes

long: deps-all ## run the long tests, and those that need programs which make test does not install; 6 minutes
	@$(LONGER) -run "$(LONG_TESTS)" $(LONG_PACKAGES)
	@cd full && $(LONGER) $(REST)

further: deps-all ## run the tests that need programs which make test does not install; 2 minutes
	@$(LONGER) -run "$$(.ci/deps further tests)" $$(.ci/deps further packages)
	@cd full && $(GOTEST) $(REST)

race: deps-all ## run the tests of concurrent code with the race detector; 6 minutes
	@$(SOON) CGO_ENABLED=1 $(GOTEST) $(QUICKLY) -race $(RACE)
	@cd full && $(SOON) CGO_ENABLED=1 $(GOTEST) $(QUICKLY) -race $(RACE)

flaky: deps ## run the tests N times on a busy machine and list each test that ever failed: make flaky [N=20] [PACKAGES=./cli] [IN=full]
	@cd tools && $(GO) build -o ../bin/flaky ./flaky
	@cd $(IN) && $(REQUIRE) $(CURDIR)/bin/flaky -n $(N) $(PACKAGES)

golden: ## write all golden files anew; read the difference before you commit it
	QUOTABENCH_LONG=1 $(GO) test -C full -vet=off ./storefaults -run TestFaultsDocument -update
	QUOTABENCH_LONG=1 $(GO) test -vet=off $$(git grep -l 'testenv\.Update()' -- '*_test.go' $(OTHERS) | sed 's|^|./|') -update

lint: ## run the pinned golangci-lint, and actionlint on the workflow and the action that it uses
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) run ./...
	cd full && $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) run ./...
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT)
	@for script in .ci/run .ci/deps .ci/readme .ci/fresh .ci/hostile .ci/long .ci/engine .ci/workflow tools/without examples/ci/compare; do bash -n $$script || exit 1; done

bench: ## benchmark every strategy under every workload that it can serve, on installed servers or else embedded stores, and say which are left out
	$(GO) test -run '^$$' -bench . .
	cd full && $(GO) test -run '^$$' -bench . -benchtime 100ms .

release: ## build a release to dist/, and publish nothing: archives, checksums, the Homebrew cask, and SBOMs and the image if syft and docker buildx are here
	$(GO) run github.com/goreleaser/goreleaser/v2@$(GORELEASER) release --snapshot --clean \
	  $$(docker buildx inspect >/dev/null 2>&1 || echo --skip=docker) $$(command -v syft >/dev/null || echo --skip=sbom)

publish: ## build and publish the release of the tag that is checked out; CI does it
	@mkdir -p bin && tag=$$(git describe --exact-match --tags) && \
	  awk -v head="## $${tag#v}" '/^## /{in_it = index($$0, head) == 1; next} in_it' CHANGELOG.md >bin/release-notes.md && \
	  { test -s bin/release-notes.md || { echo "CHANGELOG.md has no section '## $${tag#v}': rename the one on top" >&2; exit 2; }; }
	$(GO) run github.com/goreleaser/goreleaser/v2@$(GORELEASER) release --clean --release-notes bin/release-notes.md

pages: ## write docs/strategies anew, from the reference results
	$(GO) run -C tools ./pages

man: ## write the manual pages and the completion files of shells to bin/man1 and bin/completions
	mkdir -p bin/completions
	$(GO) run -C tools ./man ../bin/man1
	for shell in bash zsh fish powershell; do $(GO) run ./cmd/quotabench completion $$shell > bin/completions/quotabench.$$shell || exit 1; done
