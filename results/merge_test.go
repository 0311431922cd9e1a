package results_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/fixture"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// shard is a copy of the fixture as one of several processes would leave it.
func shard(t *testing.T, part string, rounds int) results.Named {
	t.Helper()
	f := fixture.New(rounds, fixture.Strategies[3], fixture.Strategies[0]) // one that leaks, and one that does not
	for i := range f.Runs {
		f.Runs[i].Params.Shard = part
	}
	name := "file-" + strings.ReplaceAll(part, "/", "-of-")
	f.Provenance.Host.Name = name
	return results.Named{Name: name, File: f}
}

func merged(t *testing.T, files ...results.Named) results.File {
	t.Helper()
	f, err := results.Merge(files)
	if err != nil {
		t.Fatal(err)
	}
	b, err := codec.Encode(f)
	if err != nil {
		t.Fatalf("cannot be written: %v", err)
	}
	if _, err := codec.Decode(b); err != nil {
		t.Fatalf("cannot be read: %v", err)
	}
	return f
}

// Every count and every value of every histogram of the shards is in the whole.
func TestMergeShards(t *testing.T) {
	a, b := shard(t, "1/2", 2), shard(t, "2/2", 2)
	b.File.Runs[0].Leak.Units, b.File.Runs[0].Leak.WorstUnits, b.File.Runs[0].Service = 17, 90, planted(t, 5_000_000, 3)
	b.File.Runs[0].Guarantee = []results.Clause{{Property: "leak", Formula: "L", Bound: 0, Certain: 17, Possible: 17, Verdict: results.Broken}}
	b.File.Runs[0].Record = b.File.Runs[0].Guarantee
	b.File.Runs[2].Audit.Discard("noise", results.DiscardsTimings, "a neighbour")
	f := merged(t, a, b)
	if len(f.Runs) != 4 || len(f.Merged) != 2 || f.Merged[1].Provenance.Host.Name != "file-2-of-2" || f.Merged[1].Runs != 4 {
		t.Fatalf("%d runs, of %+v", len(f.Runs), f.Merged)
	}
	x, y, r := &a.File.Runs[0], &b.File.Runs[0], &f.Runs[0]
	if r.Issued != x.Issued+y.Issued || r.Admitted != x.Admitted+y.Admitted || r.ThroughputPerS != x.ThroughputPerS+y.ThroughputPerS ||
		r.Params.Workers != 100 || r.Params.Shard != "" || r.Params.Shards != 2 || r.Repetition != 1 {
		t.Errorf("joined %+v", r)
	}
	if r.Leak.Units != x.Leak.Units+17 || r.Leak.WorstUnits != 90 || r.Leak.Trials != 2*x.Leak.Trials ||
		r.Leak.PctOfLimit != results.Percent(float64(r.Leak.Units), float64(20*r.Leak.Trials)) {
		t.Errorf("leak %+v", r.Leak)
	}
	if len(r.Guarantee) == 0 || r.Guarantee[len(r.Guarantee)-1].Verdict != results.Broken {
		t.Errorf("the clause that one shard broke: %+v", r.Guarantee)
	}
	if len(r.Record) != 1 || r.Record[0].Verdict != results.Broken {
		t.Errorf("the promise of the record that one shard broke: %+v", r.Record)
	}
	if f.Runs[2].Audit.TimingsValid || !f.Runs[3].Audit.TimingsValid {
		t.Error("what discards a shard discards the whole, and nothing else")
	}
	sum := fixture.Must[*results.Histogram](t)(x.Service.Decode())
	sum.Merge(fixture.Must[*results.Histogram](t)(y.Service.Decode()))
	if got := fixture.Must[*results.Histogram](t)(r.Service.Decode()); got.Count() != x.Service.Samples+3 || got.Max() != sum.Max() || got.Quantile(0.5) != sum.Quantile(0.5) || r.Service.P99 != sum.Quantile(0.99) {
		t.Errorf("%d values up to %d, want %d up to %d", got.Count(), got.Max(), x.Service.Samples+3, sum.Max())
	}
}

// planted is a latency of n values.
func planted(t *testing.T, ns int64, n int) results.Latency {
	t.Helper()
	h := results.NewHistogram()
	for range n {
		h.Record(ns)
	}
	l, err := results.LatencyOf([]results.Part{{Outcome: "admitted", Tier: "redis", Histogram: h}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Rounds of one machine follow each other, and their summary is that of one
// measurement of all.
func TestMergeRounds(t *testing.T) {
	all := fixture.New(5, fixture.Strategies[:3]...)
	a, b := all, all
	a.Runs, b.Runs = all.Runs[:6], nil
	for _, r := range all.Runs[6:] {
		r.Repetition -= 2
		b.Runs = append(b.Runs, r)
	}
	b.Provenance.Time = b.Provenance.Time.Add(1)
	f := merged(t, results.Named{Name: "a", File: a}, results.Named{Name: "b", File: b})
	if !same(t, f.Runs, all.Runs) || f.Merged[1].Later != 2 {
		t.Errorf("the runs are others, or in another order; later by %d", f.Merged[1].Later)
	}
	if !reflect.DeepEqual(results.Summarise(f.Runs), results.Summarise(all.Runs)) {
		t.Error("the summaries differ")
	}
	// Other strategies stand side by side, also those of another machine.
	other := fixture.New(1, fixture.Strategies[4])
	other.Provenance.Host.Name = "elsewhere"
	if f := merged(t, results.Named{Name: "a", File: a}, results.Named{Name: "c", File: other}); len(f.Summarised()) != 4 || f.Merged[1].Later != 0 {
		t.Errorf("%d summaries", len(f.Summarised()))
	}
}

func same(t *testing.T, a, b any) bool {
	t.Helper()
	x, y := fixture.Must[[]byte](t)(json.Marshal(a)), fixture.Must[[]byte](t)(json.Marshal(b))
	return string(x) == string(y)
}

func TestMergeRefuses(t *testing.T) {
	plain := func(name string, change func(*results.File)) results.Named {
		f := fixture.New(1, fixture.Strategies[0])
		f.Provenance.Time = f.Provenance.Time.Add(time.Duration(len(name)))
		change(&f)
		return results.Named{Name: name, File: f}
	}
	base := plain("a", func(*results.File) {})
	for want, other := range map[string]results.Named{
		"are of the same measurement":      plain("b", func(*results.File) {}),
		"measured, and the b is simulated": plain("the b", func(f *results.File) { f.Kind, f.Provenance = results.Simulated, results.Provenance{} }),
		"redis process 7.0.15":             plain("the b", func(f *results.File) { f.Stores = map[string]results.Store{"redis": {Kind: "embedded"}} }),
		"the workload hot-key":             plain("the b", func(f *results.File) { f.Workload.Name = "steady" }),
		"timings of two machines":          plain("the b", func(f *results.File) { f.Provenance.Host.Name = "other" }),
		"they share no load":               plain("the b", func(f *results.File) { f.Runs[0].Params.Shard = "1/2" }),
	} {
		if _, err := results.Merge([]results.Named{base, other}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line about %s", err, want)
		}
	}
	took := lasted(shard(t, "1/2", 1))
	for want, files := range map[string][]results.Named{
		"their subjects are the same":     {shard(t, "1/2", 1), func() results.Named { s := shard(t, "1/2", 1); s.File.Seed++; return s }()},
		"give all shards of one load":     {shard(t, "1/3", 1), shard(t, "2/3", 1)},
		"not measured at the same time":   {shard(t, "1/2", 1), begun(shard(t, "2/2", 1), took)},
		"no histogram":                    {shard(t, "1/2", 1), func() results.Named { s := shard(t, "2/2", 1); s.File.Runs[0].Service.Histogram = ""; return s }()},
		"an open loop next to the closed": {shard(t, "1/2", 1), func() results.Named { s := shard(t, "2/2", 1); s.File.Runs[0].Paced = &s.File.Runs[1]; return s }()},
		"merging takes two files or mo":   {base},
	} {
		if _, err := results.Merge(files); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line about %s", err, want)
		}
	}
	simulated := plain("a", func(f *results.File) { f.Kind, f.Provenance = results.Simulated, results.Provenance{} })
	again := simulated
	again.Name = "b"
	if _, err := results.Merge([]results.Named{simulated, again}); err == nil || !strings.Contains(err.Error(), "the same simulation") {
		t.Errorf("got %v", err)
	}
}

// lasted is how long the runs of a file took.
func lasted(n results.Named) (d time.Duration) {
	for i := range n.File.Runs {
		if d += time.Duration(n.File.Runs[i].ElapsedNS); n.File.Runs[i].Paced != nil {
			d += time.Duration(n.File.Runs[i].Paced.ElapsedNS)
		}
	}
	return d
}

// begun is the file as if it had been measured so much later.
func begun(n results.Named, later time.Duration) results.Named {
	n.File.Provenance.Time = n.File.Provenance.Time.Add(later)
	return n
}

// TestMergeTogether: shards that share a moment are one load, and others are not.
func TestMergeTogether(t *testing.T) {
	took := lasted(shard(t, "1/3", 1))
	merged(t, shard(t, "1/2", 1), begun(shard(t, "2/2", 1), took-1))
	merged(t, begun(shard(t, "1/2", 1), took-1), shard(t, "2/2", 1))
	// The first and the last of three share no moment, though each of them shares one with the second.
	three := []results.Named{begun(shard(t, "1/3", 1), 3*took/2), begun(shard(t, "2/3", 1), took/2), shard(t, "3/3", 1)}
	_, err := results.Merge(three)
	if err == nil || !strings.Contains(err.Error(), "file-3-of-3 from ") || !strings.Contains(err.Error(), "file-1-of-3 from ") ||
		!strings.Contains(err.Error(), "start all shards together") {
		t.Errorf("got %v", err)
	}
	for i := range three {
		three[i].File.Kind = results.Simulated
		for k := range three[i].File.Runs {
			three[i].File.Runs[k].Placement = nil
		}
	}
	if _, err := results.Merge(three); err != nil {
		t.Errorf("simulated: %v", err)
	}
}
