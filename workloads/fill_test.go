package workloads

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

func TestFill(t *testing.T) {
	for _, c := range []struct {
		fill  float64
		limit int64
		want  int64
	}{
		{0, 20, 0}, {0.5, 20, 10}, {0.95, 20, 19}, {1, 20, 20},
		{0.29, 100, 29}, // 28.999999999999996 in floating point
		{0.99, 20, 19},  // less than 1 leaves room
		{0.5, 3, 2}, {0.95, 10_737_418_240, 10_200_547_328}, {1, 1, 1}, {1, quota.MaxLimit, quota.MaxLimit},
	} {
		p := *policy(t, "user-links")
		p.Limit = c.limit
		got, err := fillUnits(Params{Policy: &p, Options: given("fill", c.fill)})
		if got != c.want || err != nil {
			t.Errorf("a fill of %v of %d is %d, %v; want %d", c.fill, c.limit, got, err, c.want)
		}
	}
}

// TestFillOfStreams checks every workload: all subjects start with their share,
// and those of the over-quota share with the whole.
func TestFillOfStreams(t *testing.T) {
	for _, m := range All() {
		p := usual(t, m)
		params := Params{Seed: 3, Policy: p, Options: given("fill", 0.25)}
		if m.Takes("subjects") {
			params.Set("over-quota", 0.3)
		}
		if m.NeedsTrace {
			params.Set("trace", "testdata/anonymous.csv")
		}
		s, info := build(t, m.Name, params)
		n := max(20, Subjects(s))
		full := 0
		for i := range uint32(n) {
			switch Initial(s, i) {
			case p.Limit:
				full++
			case p.Limit / 4:
			default:
				t.Fatalf("%s: subject %d starts with %d of %d", m.Name, i, Initial(s, i), p.Limit)
			}
		}
		if (full > 0 && full < n) != m.Takes("subjects") {
			t.Errorf("%s: %d of %d subjects are full", m.Name, full, n)
		}
		if notes := strings.Join(info.Notes, "\n"); !strings.Contains(notes, "used") ||
			strings.Contains(notes, "the others start") != (full > 0) {
			t.Errorf("%s: notes %q", m.Name, info.Notes)
		}
		delete(params.Options, "over-quota")
		params.Set("fill", 1)
		s, info = build(t, m.Name, params)
		for i := range uint32(n) {
			if Initial(s, i) != p.Limit {
				t.Fatalf("%s: subject %d starts with %d of %d", m.Name, i, Initial(s, i), p.Limit)
			}
		}
		if !slices.ContainsFunc(info.Notes, func(n string) bool {
			return strings.HasPrefix(n, "every subject starts with its quota of")
		}) {
			t.Errorf("%s: notes %q", m.Name, info.Notes)
		}
	}
}

// TestFullAbuse asks for a share that one subject alone could not give, and that
// a fill of 1 makes irrelevant.
func TestFullAbuse(t *testing.T) {
	p := policy(t, "user-links")
	s, info := build(t, "abuse", Params{Policy: p, Requests: 1_000, Options: given("popularity", "single", "fill", 1)})
	if Initial(s, 0) != p.Limit || len(info.Notes) != 2 {
		t.Errorf("starts with %d; notes %q", Initial(s, 0), info.Notes)
	}
}

// TestFillByRows checks that the share of a trace goes by the rows of its
// subjects, the busiest of which comes last in this one.
func TestFillByRows(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,subject\n")
	for i := range 10 {
		fmt.Fprintf(&text, "%d,idle-%d\n", i, i)
	}
	for i := range 30 {
		fmt.Fprintf(&text, "%d,busy\n", 10+i)
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := build(t, "trace", Params{Policy: policy(t, "user-links"), Options: given("trace", path, "over-quota", 0.2)})
	over := 0
	var op Op
	for i := range s.Len() {
		s.At(i, &op)
		if Initial(s, op.Subject) > 0 {
			over++
		}
	}
	if over != 8 || Initial(s, 10) != 0 {
		t.Errorf("%d of 40 rows are over quota, want 8; the busy subject starts with %d", over, Initial(s, 10))
	}
}

// TestOverQuotaOfWorkloads counts the checks on full subjects.
func TestOverQuotaOfWorkloads(t *testing.T) {
	const n = 200_000
	for workload, want := range map[string]float64{"steady": 0.05, "abuse": 0.95, "boundary": 0} {
		p := policy(t, "agent-payments")
		s, _ := build(t, workload, Params{Seed: 8, Policy: p})
		over := 0
		var op Op
		for i := range int64(n) {
			s.At(i, &op)
			if Initial(s, op.Subject) == p.Limit {
				over++
			}
		}
		closeTo(t, workload+": checks over quota", float64(over)/n, want, n)
	}
}

func TestBoundaryNotes(t *testing.T) {
	_, info := build(t, "boundary", Params{Policy: policy(t, "user-links"), Options: given("subjects", 5)})
	if want := "a window takes about 100 requests to use up the limit of its most popular subject"; !slices.Contains(info.Notes, want) {
		t.Errorf("notes %q lack %q", info.Notes, want)
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	links := policy(t, "user-links")
	tenant := policy(t, "tenant-uploads")
	tiny := "testdata/tiny.csv"
	anonymous := "testdata/anonymous.csv"
	for _, c := range []struct {
		workload string
		params   Params
		want     string
	}{
		{"steady", Params{Policy: links, Options: given("popularity", "most")}, "unknown popularity"},
		{"steady", Params{Policy: links, Options: given("popularity", "single", "subjects", 5)}, "single is for one subject"},
		{"steady", Params{Policy: links, Options: given("popularity", "hot:0.5:5", "subjects", 5)}, "more than 5 subjects"},
		{"steady", Params{Policy: links, Options: given("popularity", "hot:0.1:5", "subjects", 20)}, "least popular"},
		{"steady", Params{Policy: links, Options: given("popularity", "single", "over-quota", 0.5)},
			"share 0.5 cannot be had: the popularity of 1 subjects gives 0;"},
		{"abuse", Params{Policy: links, Options: given("popularity", "single")}, "share 0.95 cannot be had"},
		{"steady", Params{Policy: links, Options: given("popularity", "hot:0.9:1", "over-quota", 0.5)}, "gives 0.1;"},
		{"hot-key", Params{Policy: links, Options: given("popularity", "uniform")}, "it has cost, fill"},
		{"steady", Params{Policy: links, Options: given("fill", 1, "over-quota", 0.05)}, "contradicts"},
		{"steady", Params{Policy: links, Options: given("fill", 1.5)}, "option fill: 1.5 is not from 0 to 1"},
		{"steady", Params{Policy: links, Options: given("fill", -0.5)}, "option fill: -0.5"},
		{"steady", Params{Policy: policy(t, "receipt-email"), Options: given("fill", 0.5)},
			"less than a whole unit of the limit of 1 e-mail"},
		{"hot-key", Params{Policy: links, Options: given("fill", 0.01)}, "less than a whole unit"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "fill", 0.01)}, "less than a whole unit"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "popularity", "uniform")},
			"the trace names its subjects"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "subjects", 9)}, "the trace names its subjects"},
		{"trace", Params{Policy: links, Options: given("trace", anonymous, "popularity", "single", "over-quota", 0.5)},
			"cannot be had"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "cost", "recordd")}, "unknown cost"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "cost", "21")}, "more than the limit of 20 links"},
		{"steady", Params{Policy: links, Options: given("cost", "recorded")}, "cost recorded is for traces"},
		{"hot-key", Params{Policy: links, Options: given("cost", "recorded")}, "cost recorded is for traces"},
		{"steady", Params{Policy: links, Options: given("cost", "uniform:21-30")}, "more than the limit of 20 links"},
		{"hot-key", Params{Policy: links, Options: given("cost", "50")}, "more than the limit of 20 links"},
		{"boundary", Params{Policy: tenant}, "policy tenant-uploads has a standing window; boundary is for calendar-month"},
		{"boundary", Params{Policy: policy(t, "login")}, "has a rolling window"},
		{"steady", Params{Policy: links, Options: given("fail-share", 0.1)}, "no option"},
		{"boundary", Params{Policy: links, Options: given("abandon-share", 0.1)}, "no option"},
		{"trace", Params{Policy: links, Options: given("trace", tiny, "hold", "1ns")}, "no option"},
		{"hot-key", Params{Policy: links, Options: given("settle", "1ns")}, "no option"},
		{"abuse", Params{Policy: links, Options: given("misjudged-share", 0.1)}, "no option"},
		{"uploads", Params{Policy: tenant, Options: given("fail-share", 0.6, "abandon-share", 0.5)},
			"0.6 and 0.5, are more than 1"},
		{"uploads", Params{Policy: tenant, Options: given("fail-share", -0.1)}, "option fail-share: -0.1"},
		{"uploads", Params{Policy: tenant, Options: given("abandon-share", -0.1)}, "option abandon-share: -0.1"},
		{"uploads", Params{Policy: tenant, Options: given("misjudged-share", 1.1)}, "option misjudged-share: 1.1"},
		{"uploads", Params{Policy: tenant, Options: given("settle", "-1ns")},
			"option settle: -1ns is not from 0s to 24h0m0s"},
		{"uploads", Params{Policy: tenant, Options: given("hold", "24h0m0.000000001s")},
			"option hold: 24h0m0.000000001s is not"},
	} {
		m, err := Lookup(c.workload)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = m.New(c.params)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %+v: error %v, want one with %q", c.workload, c.params, err, c.want)
		}
	}
}
