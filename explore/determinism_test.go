package explore_test

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"

	"github.com/quotabench/quotabench/explore"
)

// repetitions of searches that must come out the same. QUOTABENCH_REPETITIONS
// asks for more.
func repetitions() int {
	if n, err := strconv.Atoi(os.Getenv("QUOTABENCH_REPETITIONS")); err == nil {
		return n
	}
	return 4
}

// One search gives the same bytes every time, on one processor and on two: the
// report, the record and the charts.
func TestSameSearchSameBytes(t *testing.T) {
	testenv.Sequential(t)
	faults := []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultClock, quota.FaultEviction}
	for name, cfg := range map[string]explore.Config{
		"check-then-set": {Clients: 3},
		"incr-expire":    {Faults: faults, Bounds: explore.Bounds{MaxStates: 400}},
		"redis-hash":     {Properties: []explore.Property{explore.Leak}},
		"lua-reserve": {Bounds: explore.Bounds{MaxStates: 500},
			Scripts: []explore.Script{{{Kind: explore.Take, Units: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
			var first []byte
			for i := range repetitions() {
				runtime.GOMAXPROCS(1 + i%2)
				r := run(t, name, cfg)
				var b bytes.Buffer
				if err := text.Search(&b, layout.Page{}, r, ""); err != nil {
					t.Fatal(err)
				}
				if err := json.NewEncoder(&b).Encode(r); err != nil {
					t.Fatal(err)
				}
				for i := range r.Findings {
					p, err := plot.Sequence(&r.Findings[i])
					if err != nil {
						t.Fatal(err)
					}
					svg, err := p.SVG()
					if err != nil {
						t.Fatal(err)
					}
					b.Write(svg)
				}
				if first == nil {
					first = b.Bytes()
				}
				if !bytes.Equal(b.Bytes(), first) {
					t.Fatalf("run %d differs:\n%s\nthe first:\n%s", i+1, b.Bytes(), first)
				}
			}
		})
	}
}
