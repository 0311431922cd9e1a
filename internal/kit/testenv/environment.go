package testenv

import (
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// directing are the variables of this project that direct its tests. All others whose names begin with QUOTABENCH_
// belong to the product, or to a test that starts itself.
var directing = []string{
	"QUOTABENCH_REQUIRE",        // programs: without one of these, a test fails instead of being skipped
	"QUOTABENCH_HIDE",           // programs: tests do not find these
	"QUOTABENCH_LONG",           // any value: long tests run too
	"QUOTABENCH_LONG_EVENTS",    // how many events the long test of the oracle judges
	"QUOTABENCH_REDIS_IMAGE",    // the image of Redis in containers
	"QUOTABENCH_POSTGRES_IMAGE", // the image of PostgreSQL in containers
	"QUOTABENCH_AGREEMENT",      // full: simulations and runs are compared with all numbers of callers
	"QUOTABENCH_REPEATS",        // how often a simulation is repeated
	"QUOTABENCH_REPETITIONS",    // how often a search is repeated
	"QUOTABENCH_PROGRAMS",       // how many random programs the in-memory Redis and a server run
	"QUOTABENCH_DOCS",           // letter: commands of the docs run for as long as they are printed
	"QUOTABENCH_SCREENSHOTS",    // the directory for images of the HTML report
	"QUOTABENCH_KILLS",          // at how many moments each command is killed
	"QUOTABENCH_SOAK",           // how long the soak test takes
	"QUOTABENCH_NOISE",          // the directory of recorded series for the study of noise
}

// The other variables that a test must not inherit: the product or one of its libraries reads them, or they name a
// server that is not the test's own.
var (
	inheritedNames = []string{
		"COLUMNS", "LINES", "TERM", "NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", // the terminal
		"LANG", "LANGUAGE", "TZ", // the locale
		"JOB_COMPLETION_INDEX", // the part of a workload that a Pod of Kubernetes sends
		"GOGC", "GOMEMLIMIT",   // how much memory a compiler may use: see collectAsUsual
	}
	inheritedPrefixes = []string{
		"LC_",                                            // the locale
		"PG", "REDIS", "ETCDCTL_", "NATS_", "ZOOKEEPER_", // clients of stores
		"GITHUB_", // workflows: GITHUB_STEP_SUMMARY names a file that the product writes
		"HOST_",   // where the library that describes this machine looks for /proc and so on
	}
	inheritedSuffix = "_PROXY" // of either case
)

// cleared marks an environment that belongs to a test. A test may set any variable for a child process. If the child
// is a test binary too, it keeps these variables.
const cleared = "QUOTABENCH_TEST_ENVIRONMENT"

// A test has its own environment, whatever its caller has exported. Every package with tests imports this one: see
// [TestEnvironmentEverywhere]. What Go itself, the search for programs and the container engine's client read is kept.
func init() {
	if os.Getenv(cleared) != "" {
		return
	}
	collectAsUsual()
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if inherited(name) {
			set(os.Unsetenv(name))
		}
	}
	set(os.Setenv("TZ", "UTC")) // instead of the machine's own zone
	set(os.Setenv(cleared, "1"))
}

// collectAsUsual takes back what the caller has told the garbage collector for the sake of compilers, which take
// seconds and may use all memory until then. Tests run side by side, and some of them for minutes.
func collectAsUsual() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		return
	}
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(math.MaxInt64)
}

// inherited reports whether a test must not see the caller's value of a variable.
func inherited(name string) bool {
	if strings.HasPrefix(name, "QUOTABENCH_") {
		return !slices.Contains(directing, name)
	}
	startsWith := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(inheritedNames, name) || slices.ContainsFunc(inheritedPrefixes, startsWith) ||
		strings.HasSuffix(strings.ToUpper(name), inheritedSuffix)
}

// set fails the whole test binary: its tests would depend on their caller.
func set(err error) {
	if err != nil {
		panic(err)
	}
}
