package testenv_test

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// printing has TestEnvironment print its environment. Its name is one that no rule clears.
const printing = "TESTENV_PRINTING"

// hostile are variables of a caller of whom a test must know nothing.
var hostile = []string{
	"COLUMNS=50", "LINES=5", "TERM=dumb", "NO_COLOR=1", "CLICOLOR_FORCE=1", "FORCE_COLOR=1", "LANG=tr_TR.UTF-8",
	"LANGUAGE=tr", "LC_ALL=tr_TR.UTF-8", "LC_NUMERIC=tr_TR.UTF-8",
	"HTTP_PROXY=http://127.0.0.1:1", "https_proxy=http://127.0.0.1:1", "ALL_PROXY=socks5://127.0.0.1:1", "NO_PROXY=",
	"no_proxy=",
	"PGHOST=127.0.0.1", "PGPORT=1", "PGUSER=nobody", "PGPASSWORD=wrong", "PGSERVICE=none", "PGSSLMODE=verify-full",
	"REDIS_URL=redis://127.0.0.1:1", "REDISCLI_AUTH=wrong", "ETCDCTL_PASSWORD=wrong", "NATS_PASSWORD=wrong",
	"ZOOKEEPER_PASSWORD=wrong",
	"GOGC=50", "GOMEMLIMIT=2GiB",
	"GITHUB_STEP_SUMMARY=/proc/none", "GITHUB_ACTIONS=true", "JOB_COMPLETION_INDEX=7", "HOST_PROC=/proc/none",
	"QUOTABENCH_REDIS=redis://127.0.0.1:1", "QUOTABENCH_POSTGRES=postgres://127.0.0.1:1",
	"QUOTABENCH_SERVICE_PASSWORD=wrong",
	"QUOTABENCH_NO_BITMAPS=1", "QUOTABENCH_MEET=nats://127.0.0.1:1/none", "QUOTABENCH_REPLAY=wrong",
	"QUOTABENCH_ISOLATED=/proc/none", "QUOTABENCH_APART=TestEnvironment",
}

// kept are variables that direct tests, that Go reads or that say where things are.
var kept = []string{
	"QUOTABENCH_REQUIRE=redis", "QUOTABENCH_LONG=1", "QUOTABENCH_REDIS_IMAGE=redis:none", "QUOTABENCH_SOAK=1m",
	"DOCKER_HOST=tcp://127.0.0.1:1", "TESTCONTAINERS_RYUK_DISABLED=true", "GOFLAGS=-mod=mod", "GOPROXY=off",
	"GOMAXPROCS=1",
	"HOME=/proc/none", "PATH=/proc/none", "TMPDIR=/tmp",
}

func TestEnvironment(t *testing.T) {
	if os.Getenv(printing) != "" {
		_, _ = os.Stdout.WriteString(strings.Join(os.Environ(), "\n") + "\n")
		return
	}

	t.Run("of a caller", func(t *testing.T) {
		got := environmentOf(t, slices.Concat(hostile, kept, []string{"TZ=Asia/Kolkata"}))
		for _, entry := range hostile {
			name, _, _ := strings.Cut(entry, "=")
			if i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, name+"=") }); i >= 0 {
				t.Errorf("a test sees its caller's %s", got[i])
			}
		}
		for _, entry := range append(kept, "TZ=UTC") {
			if !slices.Contains(got, entry) {
				t.Errorf("a test does not see %s", entry)
			}
		}
	})

	t.Run("of a test", func(t *testing.T) {
		t.Setenv("TZ", "Asia/Kolkata")
		got := environmentOf(t, slices.Concat(os.Environ(), hostile))
		for _, entry := range append(hostile, "TZ=Asia/Kolkata") {
			if !slices.Contains(got, entry) {
				t.Errorf("a child does not see %s, which the test has set", entry)
			}
		}
	})
}

// environmentOf returns what this test sees if it is started with env.
func environmentOf(t *testing.T, env []string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEnvironment$")
	cmd.Env = append(env, printing+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(string(out), "\n")
}

// repository is its top. The module of examples is a stranger's: it cannot import internal packages.
const (
	repository = "../../.."
	strangers  = "examples"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test|Example|Fuzz)\w*\((\w+ \*testing\.[TF])?\)`)

// TestEnvironmentEverywhere requires that the tests of every package, in all modules but a stranger's, import package
// testenv. A package with only benchmarks is not asked: go test -bench . reads QUOTABENCH_REDIS and so on.
// No other code imports it. Packages such as storetest are for the tests of strangers, whose environment is their own.
func TestEnvironmentEverywhere(t *testing.T) {
	const this = "github.com/quotabench/quotabench/internal/kit/testenv"
	tested := map[string]bool{}
	importing := map[string]bool{}
	for _, path := range sources(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		imports := false
		for _, spec := range file.Imports {
			imports = imports || spec.Path.Value == `"`+this+`"`
		}
		dir := filepath.Dir(path)
		switch {
		case strings.HasSuffix(path, "_test.go"):
			tested[dir] = tested[dir] || testFunction.Match(text)
			importing[dir] = importing[dir] || imports
		case imports:
			t.Errorf("%s imports %s, and is no test", path, this)
		}
	}
	if len(tested) < 100 {
		t.Errorf("only %d packages with tests found", len(tested))
	}
	for dir, has := range tested {
		if has && !importing[dir] {
			t.Errorf("the tests of %s inherit the environment: add the import of %s", dir, this)
		}
	}
}

// sources are the Go files of the repository that are compiled on this platform.
func sources(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		hidden := strings.HasPrefix(name, ".") && path != repository
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || name == "testdata" || path == filepath.Join(repository, strangers)):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		compiled, err := build.Default.MatchFile(filepath.Split(path))
		if compiled {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
