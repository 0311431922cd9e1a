package results

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rivo/uniseg"
)

var update = flag.Bool("update", false, "rewrite golden files")

func render(t testing.TB, f File) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTable(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// tableCases are files that show every part of the table. Tests must not change
// them.
var tableCases = sync.OnceValue(func() map[string]File {
	few := fixture(3, fakes[:4]...)
	few.Interrupted = true

	open := fixture(6, fakes[0], fakes[3], fakes[7])
	for i := range open.Runs {
		r := &open.Runs[i]
		r.Params.Loop, r.Params.Arrivals, r.Params.RatePerS, r.ReferencePerS = OpenLoop, "poisson", 5_000, 0
		service := r.Latency
		r.Service = &service
		r.Lateness = &Lateness{PacerP50: 4_000, PacerP99: 28_000, Saturated: r.Strategy == "pg-check"}
		r.Params.DurationNS = 10e9
	}
	open.Workload = Workload{Name: "hot-key", Trace: &Trace{File: "apache-access.log", Format: "apache-combined", Rows: 10_000, Used: 10_000,
		Damaged: []DamagedRow{{8899, "unterminated user agent", true}}}}

	simulated := fixture(1, fakes[0], fakes[6])
	simulated.Kind = Simulated
	simulated.Provenance = Provenance{}
	simulated.Stores = Stores{Redis: Store{Kind: "embedded", Version: "miniredis 2.40"}, Postgres: Store{Kind: "model"}}
	for i := range simulated.Runs {
		simulated.Runs[i].Cost.ModelSQL, simulated.Runs[i].Cost.SQL = 0.4, 0
	}

	odd := fixture(6, fakes[0], fakes[3], fakes[6])
	for i := range odd.Runs {
		r := &odd.Runs[i]
		switch r.Strategy {
		case "incr-expire":
			r.Params.Label = "three-tier:write=literal,names=literal,charge=before,filter=scalable,ttl=literal,reset=job,down=service"
			r.Audit.Strike("history-overflow", StrikesCorrectness, "the history was full after 2,000,000 events: raise the bound or shorten the run")
		case "check-then-set":
			r.Params.Label = "配额-検査:模式=文字どおり,リセット=ジョブ,キャッシュ=なし\x1b[31m"
			r.Leak.Possible = r.Leak.Units + 1_234_567
			r.FalseRejects = FalseRejects{Count: 1, Possible: 40_000}
			r.Errors, r.FirstError = 12, "dial tcp 127.0.0.1:6379: connect: connection refused\nand a second line \x1b[2J"
			r.Degraded = 900
			r.Drift.Tiers[0].Units, r.Drift.Tiers[0].Width = -123_456_789, 50
		default:
			r.Latency.StallsP99 = 0
			r.Latency.StallsP999 = 0
			r.Audit.Strike("reference-drift", StrikesTimings, "the reference loop drifted by 14 % (limit 10 %)")
		}
		r.Params.Unit = "megabytes of uploads"
	}
	return map[string]File{"core": fixture(10, fakes...), "few": few, "open": open, "simulated": simulated, "odd": odd,
		"uploads": uploads(), "empty": {Kind: Measured}}
})

// uploads has all that only some workloads have, and parameters that were asked
// for.
func uploads() File {
	f := fixture(10, fakes[0], fakes[1], fakes[4], fakes[7])
	share := 0.05
	for i := range f.Runs {
		r := &f.Runs[i]
		p := &r.Params
		p.Pool, p.Limit, p.Unit = 0, 1, "e-mails"
		p.Popularity, p.Cost, p.Fill, p.OverQuota, p.Outages = "zipf:1.1", "uniform:1-5", 0.3, &share, []string{"redis:0.3-0.6"}
		r.Rolling = &Rolling{WorstUnits: 2, Multiple: 2, Units: 3, Possible: 5}
		service := r.Latency
		r.Settlement = &Settlement{Commits: 910, Refunds: 70, Abandoned: 20, Errors: int64(r.Repetition % 2), Latency: service}
		r.FalseRejects = FalseRejects{Possible: 9_000, Explained: r.Strategy == "incr-expire" || r.Repetition > 1 && r.Strategy == "lua-reserve"}
		if r.Strategy == "pg-check" {
			r.Guarantee = []Clause{{Property: "leak", Formula: "L + (in flight - 1) x largest cost", Bound: 245, Certain: 1, Possible: 1, Verdict: Kept},
				{Property: "false-reject", Formula: "0 while every request asks for one unit", Bound: 1, Possible: 7, Verdict: Undecided}}
		}
		if r.Repetition <= 7 {
			r.Audit.Strike("reference-drift", StrikesTimings, "the reference loop went from 96340 to 111964 commands/s")
		}
		if r.Repetition <= 2 && r.Strategy != "lua-reserve" {
			r.Audit.Strike("jobs-failed", StrikesNote, fmt.Sprintf("%d rounds of background jobs failed", r.Repetition+len(r.Strategy)))
		}
		r.Cost.KeysAtEnd, r.Cost.KeysWithoutTTL = 1_000, int64(i%4)
	}
	return f
}

func TestTableGolden(t *testing.T) {
	for name, f := range tableCases() {
		path := filepath.Join("testdata", "table-"+name+".golden")
		got := render(t, f)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(must[[]byte](t)(os.ReadFile(path))); got != want {
			t.Errorf("%s: the table differs from %s; if it should, run with -update\n%s", name, path, got)
		}
	}
}

func TestTableWidth(t *testing.T) {
	for name, f := range tableCases() {
		for i, l := range strings.Split(render(t, f), "\n") {
			if w := uniseg.StringWidth(l); w > tableWidth {
				t.Errorf("%s: line %d is %d cells wide: %s", name, i+1, w, l)
			}
			if strings.ContainsAny(l, "\x1b\r\t") {
				t.Errorf("%s: line %d has control characters: %q", name, i+1, l)
			}
			if strings.HasSuffix(l, " ") {
				t.Errorf("%s: line %d ends in a space", name, i+1)
			}
		}
	}
}

func TestTableSaysWhatMatters(t *testing.T) {
	cases := tableCases()
	for name, wants := range map[string][]string{
		"core": {"0 of 10,000 (≤ 0.030 %)", "VIOLATED", "2nd to 9th of 10: 97.9 %", "process 7.0.15", "fsync on", "seed 42", "memory-deque: policy",
			"pg-check (1 of 10 rounds)", "-1 after jobs"},
		"few":       {"interrupted", "range of rounds and no confidence interval", "p99 range"},
		"open":      {"intended start", "open loop, poisson at 5,000 requests/s", "saturated", "line 8899: unterminated user agent, used"},
		"simulated": {"SIMULATED", "MODELLED LATENCY", "0.40m", "not to PostgreSQL"},
		"odd":       {"invalid", "INVALID history-overflow", "TIMINGS reference-drift", "12 requests failed|72 requests failed", "event-driven", "!"},
		"uploads": {
			"user-links: 1 e-mail,", "popularity zipf:1.1", "cost uniform:1-5", "30 % of its limit used", "5 % of checks on subjects that start full",
			"redis from 30 % to 60 % of each round", "one connection per worker, at most 64 to Redis and 16 to PostgreSQL",
			"2.00 x limit", "SETTLEMENT", "commit or refund takes", "≤ 245 e-mails undecided|≤ 245 e-mails kept", "≤ 1 e-mail undecided",
			"[all strategies, 7 of 10 rounds]", "jobs-failed: e.g. ", "COST, EXACT", "COST, SAMPLED", "client: all of this process", "run queue: how long",
		},
		"empty": {"No strategy was run."},
	} {
		got := strings.Join(strings.Fields(render(t, cases[name])), " ")
		for _, want := range wants {
			ok := false
			for _, alt := range strings.Split(want, "|") {
				ok = ok || strings.Contains(got, alt)
			}
			if !ok {
				t.Errorf("%s: nothing about %q", name, want)
			}
		}
	}
	if got := render(t, cases["uploads"]); strings.Contains(got, "pool 0") || strings.Contains(got, "1 e-mails") {
		t.Error("an internal value or a wrong plural is shown")
	}
	if got := render(t, cases["core"]); strings.Contains(got, "SETTLEMENT") || strings.Contains(got, "ROLLING") || strings.Contains(got, "RELEASES") ||
		strings.Contains(got, "keys without") || strings.Contains(got, "asked for") || strings.Contains(got, "outages") {
		t.Error("a section or column has nothing to show")
	}
	if got := render(t, cases["simulated"]); strings.Contains(got, "decisions\n") || strings.Contains(got, "INCR loop") {
		t.Error("a simulation reports a throughput")
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTableWriteError(t *testing.T) {
	if err := WriteTable(brokenWriter{}, fixture(1, fakes[0])); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"one two three", 7, "one two|three"},
		{"one two three", 13, "one two three"},
		{"(≤ 0.20 %)", 9, "(≤|0.20 %)"},
		{"a:b=literal,c=job", 12, "a:b=literal,|c=job"},
		{"unbreakable", 4, "unbr|eaka|ble"},
		{"配额检查", 4, "配额|检查"},
		{"", 5, ""},
	} {
		if got := strings.Join(wrap(c.in, c.width), "|"); got != c.want {
			t.Errorf("wrap %q at %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{formatNS(0), "0.00 ns"}, {formatNS(7), "7.00 ns"}, {formatNS(999.4), "999 ns"}, {formatNS(999.6), "1.00 µs"}, {formatNS(41_234), "41.2 µs"},
		{formatNS(999_600), "1.00 ms"}, {formatNS(1.5e9), "1.50 s"}, {formatNS(3.6e12), "3,600 s"},
		{formatNSInterval(1.2e6, 0.9e6, 14e6), "[0.90, 14.0]"},
		{formatCount(0), "0"}, {formatCount(-1_234_567), "-1,234,567"}, {formatCount(999), "999"}, {formatCount(-1 << 63), "-9,223,372,036,854,775,808"},
		{formatPct(0), "0 %"}, {formatPct(0.0004), "4e-04 %"}, {formatPct(0.03), "0.030 %"}, {formatPct(99.99), ">99.9 %"}, {formatPct(100), "100 %"},
		{formatPct(12.34), "12.3 %"}, {formatPct(1234), "1,234 %"}, {formatSigned(3), "+3"}, {formatSigned(0), "0"}, {formatRange(3, 3), "3"}, {formatRange(3, 5), "3..5"},
		{formatPer(0.001), "<0.01"}, {ordinal(1) + ordinal(2) + ordinal(3) + ordinal(11) + ordinal(22), "1st2nd3rd11th22nd"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
