package quotabench_test

import (
	"flag"
	"os"
	"testing"

	"github.com/quotabench/quotabench/harness/bench"
	_ "github.com/quotabench/quotabench/stores/all"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// benchTime is how long each benchmark lasts if -benchtime does not say: as long as a
// round of quotabench run --quick. There are a hundred of them, and a second each would take
// minutes, of which a comparison has ten or twenty.
const benchTime = "100ms"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.benchtime" })
	if !given {
		if err := flag.Set("test.benchtime", benchTime); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// BenchmarkStrategies runs every strategy of this module whose stores are here under every generated
// workload that it can serve. Lines before the results name those that are left out, and why; strategies of the module
// full have a benchmark there. What it reports stands at the package bench; benchstat reads it:
//
//	go test -bench . -count 10 | tee new.txt && benchstat old.txt new.txt
func BenchmarkStrategies(b *testing.B) { bench.Run(b) }
