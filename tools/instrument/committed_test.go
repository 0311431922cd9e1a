//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/tools/program"
)

// planted is a probe of two sides here, whose samples are given.
func planted(name string, g group, left, right []float64, metrics ...metric) probe {
	return probe{name: name, group: g, pkg: "no/such/package", metrics: metrics,
		open: func(context.Context, *tool) (l, r turn, done func() error, err error) {
			of := func(values []float64) turn {
				next := 0
				return func(context.Context) (sample, error) {
					v := values[next%len(values)]
					next++
					return sample{"x": v}, nil
				}
			}
			return of(left), of(right), nil, nil
		}}
}

// against runs the program with planted pairs on what an earlier run committed.
func against(t *testing.T, committed string, p probe, more ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = run(t.Context(), []probe{p}, append([]string{"-pairs", "3", "-committed", committed}, more...), &out, &errs)
	return code, strings.Join(strings.Fields(out.String()), " "), errs.String()
}

// TestBehind commits a ratio and plants what falls a tenth behind it, what noise does,
// and what gets better.
func TestBehind(t *testing.T) {
	ones := []float64{1, 1, 1}
	less := metric{what: "cost", key: "x", unit: "u"}
	more := metric{what: "rate", key: "x", unit: "u", more: true}
	for name, c := range map[string]struct {
		m         metric
		was, is   []float64
		behind    string
		committed string
	}{
		"a tenth more of what should be less": {less, []float64{2, 2, 2}, []float64{2.2, 2.2, 2.2}, "10 % worse", "2.00"},
		"a tenth less of what should be more": {more, []float64{2, 2, 2}, []float64{1.8, 1.8, 1.8}, "10 % worse", "2.00"},
		"nine hundredths":                     {less, []float64{2, 2, 2}, []float64{2.18, 2.18, 2.18}, "", "2.00"},
		"noise: one pair as before":           {less, []float64{2, 2, 2}, []float64{2, 2.4, 2.5}, "", "2.00"},
		"all pairs worse, the median enough":  {less, []float64{2, 2, 2}, []float64{2.01, 2.3, 2.5}, "15 % worse", "2.00"},
		"better":                              {less, []float64{2, 2, 2}, []float64{1, 1, 1}, "", "2.00"},
		"more of what should be more":         {more, []float64{2, 2, 2}, []float64{4, 4, 4}, "", "2.00"},
		"three times what was none": {metric{what: "files", key: "x", unit: "u", limit: true}, []float64{0, 0, 0},
			[]float64{3, 3, 3}, "3.00, and 0 is committed", "0.00"},
		"none again": {metric{what: "files", key: "x", unit: "u", limit: true}, []float64{0, 0, 0}, []float64{0, 0, 0}, "",
			"0.00"},
	} {
		t.Run(name, func(t *testing.T) {
			committed := filepath.Join(t.TempDir(), "committed.tsv")
			if code, _, errs := against(t, committed, planted("p", theirsAndOurs, ones, c.was, c.m), "-commit"); code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			code, out, errs := against(t, committed, planted("p", theirsAndOurs, ones, c.is, c.m))
			if c.behind == "" {
				if code != 0 || strings.Contains(out, "FAILS") {
					t.Errorf("exit %d: %s\n%s", code, errs, out)
				}
			} else if code != program.Failed || !strings.Contains(errs, c.m.what+", u: "+c.behind) ||
				!strings.Contains(out, "FAILS: "+c.behind) {
				t.Errorf("exit %d: %s\n%s", code, errs, out)
			}
			if !strings.Contains(out, " "+c.committed+" ") {
				t.Errorf("nothing shows the committed %s:\n%s", c.committed, out)
			}
		})
	}
}

// TestOnceMore: pairs that seem to be behind are taken again, and what is as before then
// was noise.
func TestOnceMore(t *testing.T) {
	committed := filepath.Join(t.TempDir(), "committed.tsv")
	m := metric{what: "cost", key: "x", unit: "u"}
	ones := []float64{1, 1, 1, 1, 1, 1}
	if code, _, errs := against(t, committed, planted("p", theirsAndOurs, ones, []float64{2, 2, 2}, m),
		"-commit"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for want, is := range map[int][]float64{0: {3, 3, 3, 2, 2, 2}, program.Failed: {3, 3, 3, 3, 3, 3}} {
		code, out, errs := against(t, committed, planted("p", theirsAndOurs, ones, is, m))
		if code != want || !strings.Contains(errs, "once more") {
			t.Errorf("%v: exit %d: %s\n%s", is, code, errs, out)
		}
	}
}

// TestLostFigure: a row that is committed and has no figure any more.
func TestLostFigure(t *testing.T) {
	committed := filepath.Join(t.TempDir(), "committed.tsv")
	m := metric{what: "cost", key: "x", unit: "u"}
	if code, _, errs := against(t, committed, planted("p", theirsAndOurs, []float64{1, 1, 1}, []float64{2, 2, 2}, m),
		"-commit"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	m.key = "another"
	code, _, errs := against(t, committed, planted("p", theirsAndOurs, []float64{1, 1, 1}, []float64{2, 2, 2}, m))
	if code != program.Failed || !strings.Contains(errs, "cost, u: no figure, and 2.00 is committed") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestTimesAreNotCommitted: neither a time, nor what was committed against another commit.
func TestTimesAreNotCommitted(t *testing.T) {
	l := ledger{}
	r := row{metric: metric{what: "list", key: "x", unit: seconds, seconds: 1, wanted: 1}, right: []float64{2, 2}}
	l.add([]row{r}, "abc")
	if len(l) != 0 {
		t.Errorf("committed: %v", l)
	}
	if met, ok := r.met(); met || !ok {
		t.Errorf("2 s of 1: met %v, %v", met, ok)
	}
	r = row{metric: metric{what: "cost", key: "x", unit: "u", wanted: 0.5}, left: []float64{1, 1},
		right: []float64{0.4, 0.5}}
	l.add([]row{r}, "abc")
	r.right = []float64{9, 9}
	if why := l.worse(r, "def"); why != "" {
		t.Errorf("against another commit: %s", why)
	}
	if why := l.worse(r, "abc"); why == "" {
		t.Error("20 times as much is not worse")
	}
}

func TestMet(t *testing.T) {
	for name, c := range map[string]struct {
		r       row
		met, ok bool
	}{
		"a ratio below its aim": {row{metric: metric{wanted: 0.5}, left: []float64{2}, right: []float64{0.9}},
			true, true},
		"a ratio above its aim": {row{metric: metric{wanted: 0.5}, left: []float64{2}, right: []float64{1.1}},
			false, true},
		"more is better, above": {row{metric: metric{wanted: 2, more: true}, left: []float64{2},
			right: []float64{5}}, true, true},
		"more is better, below": {row{metric: metric{wanted: 2, more: true}, left: []float64{2},
			right: []float64{3}}, false, true},
		"a limit, whatever the commit did": {row{metric: metric{wanted: 0.6, limit: true}, left: []float64{0.1},
			right: []float64{0.5}}, true, true},
		"a limit that the commit knows not": {row{metric: metric{wanted: 0.6, limit: true}, missing: "abc",
			right: []float64{0.7}}, false, true},
		"nothing wanted":   {row{left: []float64{2}, right: []float64{3}}, false, false},
		"nothing measured": {row{metric: metric{wanted: 2}, missing: "here"}, false, false},
	} {
		if met, ok := c.r.met(); met != c.met || ok != c.ok {
			t.Errorf("%s: %v, %v", name, met, ok)
		}
	}
}

func TestLedgerRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "committed.tsv")
	want := ledger{{"a", "u"}: {standing{1.5, 1, 2}, "abc"}, {"b, and \"c\"", "1/s"}: {standing{0.25, 0.2, 0.3}, limit}}
	if err := want.write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := readLedger(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	title := strings.Join(ledgerTitle, "\t") + "\n"
	for name, text := range map[string]string{
		"empty": "", "another title": "a\tb\n", "no number": title + "a\tu\tabc\tx\t1\t1\n",
		"twice": title + "a\tu\tabc\t1\t1\t1\na\tu\tlimit\t1\t1\t1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readLedger(path); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCommittedRows: ratios are committed, and only of rows of probes that there are.
func TestCommittedRows(t *testing.T) {
	l, err := readLedger("committed.tsv")
	if err != nil {
		t.Fatal(err)
	}
	if len(l) == 0 {
		t.Error("committed.tsv: no ratio is committed: make -C tools faster COMMIT=1 on a machine that does nothing else")
	}
	rows := map[[2]string]bool{}
	for _, p := range probes() {
		for _, m := range p.metrics {
			rows[row{metric: m}.key()] = true
		}
	}
	for key, e := range l {
		if !rows[key] {
			t.Errorf("committed.tsv: no probe has a row %q", key)
		}
		if e.least > e.median || e.median > e.most {
			t.Errorf("committed.tsv: %q: %+v", key, e.standing)
		}
	}
}
