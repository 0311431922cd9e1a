package generators_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/fixture"
	"github.com/quotabench/quotabench/internal/generators"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

var began = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// handed are directories as n generators hand them back that each made so many requests, one each
// 10 µs, of subjects that have 200 each. 107 of those are admitted with a limit of 100. Generator g
// begins g*ms later.
func handed(t testing.TB, n, requests int) (dirs []string) {
	t.Helper()
	for g := range n {
		dir := t.TempDir()
		h := oracle.NewHistory(oracle.HistoryOptions{Workers: 1})
		var admitted int64
		for i := range int64(requests) {
			number := i*int64(n) + int64(g)
			e := oracle.Event{Call: i * 10_000, Reply: i*10_000 + 9_000, Units: 1, Subject: uint32(number / 200)}
			if number%200 >= 107 {
				e.Outcome = oracle.Rejected
			} else {
				admitted++
			}
			h.Append(0, e)
		}
		f := fixture.New(1, fixture.Strategies[3])
		r := &f.Runs[0]
		r.Params.Generator, r.Params.RunID, r.Paced = fmt.Sprintf("%d/%d", g+1, n), "abc", nil
		r.Audit.Part(r.Params.Generator)
		r.Issued, r.Admitted, r.Rejected, r.Errors = int64(requests), admitted, int64(requests)-admitted, 0
		r.ElapsedNS = int64(requests) * 10_000
		f.Provenance.Time = f.Provenance.Time.Add(time.Duration(g))
		ahead := time.Duration(g-1) * time.Millisecond
		head := oracle.Header{
			Strategy: r.Params.Label, Generator: r.Params.Generator, RunID: "abc", ClockAhead: ahead, ClockWrong: 180 * time.Microsecond,
			Policy: quota.Policy{Limit: 100, Unit: "requests"}, Epoch: began.Add(ahead + time.Duration(g)*time.Millisecond),
		}
		write(t, dir, r, head, h)
		b, err := codec.Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "results.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func write(t testing.TB, dir string, r *results.Run, head oracle.Header, h *oracle.History) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, generators.HistoryDir), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := os.Create(filepath.Join(dir, generators.HistoryDir, r.HistoryName()))
	if err != nil {
		t.Fatal(err)
	}
	if err := oracle.WriteHistory(w, head, h); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func history(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, generators.HistoryDir, "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// TestMergeJudgesAll: 7 units leak of each of 10 subjects, in no part by itself. What was decided in the time that
// all had in common is the throughput.
func TestMergeJudgesAll(t *testing.T) {
	f, err := generators.Merge(t.Context(), handed(t, 4, 500))
	if err != nil || len(f.Runs) != 1 {
		t.Fatalf("%d runs, %v", len(f.Runs), err)
	}
	r := &f.Runs[0]
	if r.Leak.Units != 70 || r.Leak.Possible != 70 || r.Leak.Trials != 10 || r.Leak.LeakedTrials != 10 || !r.Audit.Valid || f.Summaries[0].Leak.Units != 70 {
		t.Errorf("%+v, %+v", r.Leak, r.Audit)
	}
	// Of 5 ms, the last one had 2 ms in common with the first: each made 200 requests then.
	if want := 4 * 200 / 0.002; r.ThroughputPerS != want || r.ElapsedNS != 8e6 {
		t.Errorf("%g decisions per second for %v, should be %g", r.ThroughputPerS, time.Duration(r.ElapsedNS), want)
	}
	var text strings.Builder
	if n := generators.Report(&text, &f); n != 0 || !strings.Contains(text.String(), "round 1 of 4 generators: leak: certain 70, possible 70, clock error ±180µs") {
		t.Errorf("%d undecided: %s", n, text.String())
	}
}

// TestMissingPartsAreUndecided: whatever is missing or damaged, there is no verdict, and the reason is told.
func TestMissingPartsAreUndecided(t *testing.T) {
	for want, damage := range map[string]func(dirs []string) []string{
		"1 of 4 generators handed nothing back": func(dirs []string) []string { return dirs[1:] },
		"3 of 4 generators handed nothing back": func(dirs []string) []string { return append(dirs[:1], dirs[1]+"-gone") },
		"the history of generator 3/4 is missing or damaged": func(dirs []string) []string {
			if err := os.Remove(history(t, dirs[2])); err != nil {
				t.Fatal(err)
			}
			return dirs
		},
		"the file is cut off": func(dirs []string) []string {
			if err := os.Truncate(history(t, dirs[3]), 500); err != nil {
				t.Fatal(err)
			}
			return dirs
		},
		"are both of generator 1/4": func(dirs []string) []string {
			b, err := os.ReadFile(history(t, dirs[0]))
			if err == nil {
				err = os.WriteFile(history(t, dirs[1]), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			return dirs
		},
	} {
		f, err := generators.Merge(t.Context(), damage(handed(t, 4, 500)))
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		var text strings.Builder
		n := generators.Report(&text, &f)
		if r := &f.Runs[0]; n != 1 || r.Audit.Valid || r.Leak.Units != 0 || f.Summaries[0].Invalid != 1 || !strings.Contains(text.String(), "undecided: ") ||
			!strings.Contains(text.String(), want) || strings.Count(text.String(), "\n") != 1 {
			t.Errorf("should be undecided since %s: %s %+v", want, text.String(), r.Audit)
		}
	}
	if _, err := generators.Merge(t.Context(), []string{t.TempDir()}); err == nil {
		t.Error("nothing was merged without a word")
	}
}

// BenchmarkMerge says what merging takes; the growth of memory is that of its peak.
func BenchmarkMerge(b *testing.B) {
	for _, requests := range []int{1_000_000, 2_000_000} {
		dirs := handed(b, 4, requests)
		b.Run(fmt.Sprint(requests), func(b *testing.B) {
			for b.Loop() {
				f, err := generators.Merge(context.Background(), dirs)
				if err != nil || !f.Runs[0].Audit.Valid {
					b.Fatal(err, f.Runs[0].Audit)
				}
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		})
	}
}
