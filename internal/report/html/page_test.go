package html_test

import (
	"bytes"
	"fmt"
	gohtml "html"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/html"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/results/render"
)

// runAll is the page of a run of all strategies that serve one policy.
var runAll = sync.OnceValues(func() ([]byte, error) {
	f, err := codec.Read(filepath.Join("../../../results/baseline", "run", "results.json"))
	if err != nil {
		return nil, err
	}
	f.Runs = slices.DeleteFunc(f.Runs, func(r results.Run) bool { return r.Policy != "agent-api" })
	f.Summaries = results.Summarise(f.Runs)
	return render.HTML([]*render.Bundle{{File: &f}})
})

// TestSize: a page may be sent by mail.
func TestSize(t *testing.T) {
	page := fixture.Must[[]byte](t)(runAll())
	if n := len(page); n > 3<<20 {
		t.Errorf("a page of a run of all strategies has %d bytes", n)
	}
	if rows := bytes.Count(page, []byte("<tr class=")); rows < 30 {
		t.Errorf("%d rows in the decision table", rows)
	}
}

// full is a bundle in which every part is there.
func full(t *testing.T) *render.Bundle {
	f := fixture.Full(t)
	f.Sources = []results.Source{{Name: "1/2",
		Provenance: results.Provenance{Command: "c", Versions: map[string]string{"go": "1"}}}}
	f.Provenance.Command = "quotabench run"
	r := &f.Runs[0]
	r.Options = map[string]string{"write": "through"}
	r.Audit.Reasons = []results.Reason{{Code: "panic", Discards: codes.DiscardsNothing, Detail: "it panicked",
		Stack: "goroutine 1"}}
	r.Stored = []results.Stored{results.NewStored("redis", 1, 2, 3, nil)}
	r.Settlement = &results.Settlement{Commits: 3}
	r.Rolling = &results.Rolling{Multiple: 2}
	paced := *r
	r.Params.Loop = codes.ClosedLoop
	r.Paced = &paced
	steps := []results.Step{{Number: 1, Actor: "A", Role: codes.RoleClient, Event: codes.EventStart, Limit: 1},
		{Number: 2, At: time.Second, Actor: "A", Role: codes.RoleClient, Event: codes.EventCrash, Kind: "redis",
			Store: "redis", Command: "GET k", Reply: "0", Outcome: "admitted", Limit: 1}}
	finding := results.Finding{Strategy: "incr-expire", Policy: "p", Property: "leak", Detail: "2 of 1",
		Faults: []quota.Fault{"crash"}, Token: "qb2.token",
		Steps: steps, Columns: []results.Column{{Name: "A", Role: codes.RoleClient}}}
	replayed := finding
	x := results.NewExploration()
	x.Searches = []*results.Search{{Strategy: "incr-expire", Policy: "p", Unit: "links", Clients: 2,
		Scripts: []string{"take"}, Findings: []results.Finding{finding}, Claim: "no drift found", Capped: "100 states",
		Withheld: []results.Withheld{{Code: "context-lost", Detail: "a context was lost"}},
		ServerFacts: results.ServerFacts{Store: "PostgreSQL 15",
			Aborts: []results.Abort{{Kind: "deadlock", Shortest: &replayed}}}}}
	x.Censuses = []*results.Census{{Strategy: "census", Policy: "p", Schedules: 6, Leaking: 2}}
	x.Replays = []*results.Replay{{Strategy: "replay", Policy: "p", Property: "leak", Store: "redis 7", Finding: &replayed,
		Notes: []string{"a note"}}}
	x.Failed = []results.FailedExplore{{Strategy: "failed", Error: "it failed", Stack: "goroutine 2"}}
	x.Skipped = []results.Skipped{{Strategy: "skipped", Reason: "needs more"}}
	return &render.Bundle{File: &f, Exploration: &x, Name: "a/results.json", Series: []results.Series{{
		Strategy: "incr-expire", Unit: "links", Tiers: []string{"redis"}, Counters: []string{"redis"},
		Outages: []results.Span{{Store: "redis", ToNS: 1}},
		Samples: []results.Sample{{AtNS: 1, Hits: []int64{1}, Counters: make([]results.Counter, 1)},
			{AtNS: 2e9, Hits: []int64{2}, Counters: make([]results.Counter, 1)}},
	}}, About: func(string) (html.About, bool) {
		return html.About{Doc: "a doc", Source: "ADR-008", Use: "u", Avoid: "v"}, true
	}}
}

const attack = `</script></title></style><script>alert(1)</script>"'` + "`" + `><img src=x onerror=alert(1)>` + "\u202e\x1b]0;"

// poison sets every string that v holds, map keys included, and reports how many. Fields
// of the names in keep stay.
func poison(v reflect.Value, keep []string) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s%d", attack, n))
		return 1
	case reflect.Pointer:
		if !v.IsNil() {
			n += poison(v.Elem(), keep)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += poison(v.Index(i), keep)
		}
	case reflect.Map:
		bad := reflect.MakeMap(v.Type())
		for i, k := range v.MapKeys() {
			key := reflect.New(k.Type()).Elem()
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			key.Set(k)
			n += poison(key, keep) + poison(value, keep)
			key.SetString(fmt.Sprintf("%s-%d", key.String(), i))
			bad.SetMapIndex(key, value)
		}
		if !v.IsNil() {
			v.Set(bad)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !slices.Contains(keep, f.Name) {
				n += poison(v.Field(i), keep)
			}
		}
	}
	return n
}

// hostile pages have the attack in every string of a record: in all, and in those that
// are no choice from a list, so that every part of the page is there.
func hostile(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for name, keep := range map[string][]string{
		"every string": nil,
		"free strings": {"Kind", "Discards", "Verdict", "Property", "Form", "Loop", "Histogram", "Role", "Event", "Status",
			"At"},
	} {
		b := full(t)
		b.Name = attack
		about := html.About{Doc: attack, Source: attack, Use: attack, Avoid: attack}
		b.About = func(string) (html.About, bool) { return about, true }
		if n := poison(reflect.ValueOf(b.File), keep); n < 300 {
			t.Fatalf("%d strings in the record", n)
		}
		if n := poison(reflect.ValueOf(&b.Series), keep) + poison(reflect.ValueOf(b.Exploration), keep); n < 30 {
			t.Fatalf("%d strings in series and exploration", n)
		}
		page, err := render.HTML([]*render.Bundle{b})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = page
	}
	return out
}

var tag = regexp.MustCompile(`<(/?[a-zA-Z][a-zA-Z0-9]*)`)

// TestHostile: what stands in a record is text, wherever it appears.
func TestHostile(t *testing.T) {
	harmless, err := render.HTML([]*render.Bundle{full(t)})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range tag.FindAllSubmatch(harmless, -1) {
		known[string(m[1])] = true
	}
	for name, page := range hostile(t) {
		if n := strings.Count(string(page), "alert(1)"); n < 100 {
			t.Errorf("%s: the attack is on the page %d times: what is tested?", name, n)
		}
		if n := bytes.Count(page, []byte("<script>")); n != 1 {
			t.Errorf("%s: %d scripts", name, n)
		}
		for _, m := range tag.FindAllSubmatch(page, -1) {
			if !known[string(m[1])] {
				t.Errorf("%s: an element %s came with the text", name, m[1])
			}
		}
		if bytes.ContainsAny(page, "\u202e\x1b") || bytes.Contains(page, []byte(`"'`)) {
			t.Errorf("%s: a quote or a character that hides text came through", name)
		}
	}
}

// TestEmpty: a page without anything to show is a page.
func TestEmpty(t *testing.T) {
	x := results.NewExploration()
	for name, b := range map[string]*render.Bundle{"no runs": {File: &results.File{Kind: results.Measured}},
		"no searches": {Exploration: &x}, "nothing": {}} {
		page, err := render.HTML([]*render.Bundle{b})
		if err != nil || !bytes.HasSuffix(page, []byte("</html>\n")) || bytes.Contains(page, []byte("<table")) {
			t.Errorf("%s: %v\n%s", name, err, page)
		}
		if facts := bytes.Contains(page, []byte("What was run")); facts != (b.File != nil) { // an exploration has none
			t.Errorf("%s: What was run: %v", name, facts)
		}
	}
}

// TestSeveral: strategies have one panel each, whatever the number of records, and no
// two elements share an id.
func TestSeveral(t *testing.T) {
	a := full(t)
	b := full(t)
	b.Name = "b/results.json"
	page, err := render.HTML([]*render.Bundle{a, b})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllSubmatch(page, -1) {
		if seen[string(m[1])] {
			t.Errorf("two elements have the id %s", m[1])
		}
		seen[string(m[1])] = true
	}
	for _, m := range regexp.MustCompile(` href="#([^"]*)"`).FindAllSubmatch(page, -1) {
		if !seen[string(m[1])] {
			t.Errorf("a link leads to %s, which is not there", m[1])
		}
	}
	for _, want := range []string{`id="s-incr-expire"`, `id="r2-t1"`, "b/results.json", "qb2.token", "Nothing is claimed", "goroutine 1", "goroutine 2"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("no %s", want)
		}
	}
	again, err := render.HTML([]*render.Bundle{a, b})
	if err != nil || !bytes.Equal(page, again) {
		t.Errorf("the same records gave another page: %v", err)
	}
}

// TestStrictestBound: of several clauses on leaks the one that allows for the least
// stands next to the worst window, wherever it is declared.
func TestStrictestBound(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	clauses := []results.Clause{
		{Property: string(quota.PropertyLeak), Formula: "L", Bound: 7, Verdict: results.Kept},
		{Property: string(quota.PropertyLeak), Formula: "2 x L", Bound: 100, Verdict: results.Kept},
		{Property: string(quota.PropertyLeak), Formula: "all", Bound: quota.Unbounded, Verdict: results.Kept},
	}
	for range clauses {
		clauses = append(clauses[1:], clauses[0])
		f.Runs[0].Guarantee = clauses
		page := string(fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{File: &f}})))
		if !strings.Contains(page, "bound 7</span>") || strings.Contains(page, "bound 100</span>") ||
			strings.Contains(page, "no bound</span>") {
			t.Errorf("the bound is not the strictest one of %+v", clauses)
		}
	}
}

// TestSpeedInJobs: the page has what the terminal has of requests during rounds of jobs.
func TestSpeedInJobs(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Jobs = []results.JobLatency{{Job: "sync", During: results.Distribution{Samples: 1000, P99: 7_654_321}}}
	page := string(fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{File: &f}})))
	if row := regexp.MustCompile(`p99 in jobs</t[dh]>\s*<td[^>]*>7.65 ms<`); !row.MatchString(page) {
		t.Error("the page lacks the p99 of requests during rounds of jobs")
	}
}

// TestConditionsOfTheAnswer: the page has the conditions that the terminal prints, and what
// the design record promises in addition to what is declared.
func TestConditionsOfTheAnswer(t *testing.T) {
	f := fixture.New(1, fixture.Strategies[0])
	f.Runs[0].Record = []results.Clause{{Property: string(quota.PropertyLeak), Formula: "L", Source: "ADR-008", Says: "one crosses",
		Bound: 1, Certain: 4, Verdict: results.Broken}}
	page := string(fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{File: &f}})))
	for _, want := range []string{"; with crash, a search found a key", "; ADR-008 promises at most the limit, and 3 ",
		"leak: L (ADR-008: one crosses)</th>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestPageSaysWhatTheTerminalSays: the page has the sentences of the terminal: what the strategy
// to use costs, and what it was chosen over.
func TestPageSaysWhatTheTerminalSays(t *testing.T) {
	first, err := codec.Read(filepath.Join("../../../results/baseline", "first", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	change := func(change func(f *results.File, r *results.Run)) results.File {
		f := first
		f.Stores = maps.Clone(f.Stores)
		f.Runs = slices.Clone(f.Runs)
		for i := range f.Runs {
			if p := f.Runs[i].Paced; p != nil {
				paced := *p
				f.Runs[i].Paced = &paced
				change(&f, &paced)
			}
			change(&f, &f.Runs[i])
		}
		f.Summaries = results.Summarise(f.Runs)
		return f
	}
	for name, c := range map[string]struct {
		f    results.File
		want string
	}{
		"as it is": {first, " requests/s."},
		"tied": {change(func(f *results.File, r *results.Run) {
			for i := range f.Runs {
				if x := &f.Runs[i]; x.Strategy == "incr-expire" && r.Strategy == "incr-expire-atomic" &&
					x.Repetition == r.Repetition && r.Paced == nil {
					r.Service = x.Paced.Service
					r.Response = x.Paced.Response
				}
			}
		}), "incr-expire"},
		"stand-ins": {change(func(f *results.File, _ *results.Run) {
			f.Stores["redis"] = results.Store{Kind: "embedded"}
		}), "Timings on stand-ins were not compared."},
		"disturbed": {change(func(_ *results.File, r *results.Run) {
			r.Audit.Discard("machine-busy", codes.Disturbs, "x")
		}), "p99 ~"},
	} {
		page := string(fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{File: &c.f}})))
		_, best, _ := strings.Cut(page, `<p class="best">`)
		best = best[:strings.LastIndex(best, `<h4>Not tested`)] // of the last setting
		var b bytes.Buffer
		if err := text.Brief(&b, layout.Page{}, c.f); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(strings.Fields(b.String()), " ")
		for i := range ranking.Of(c.f) {
			for _, sentence := range text.Advice(false, &ranking.Of(c.f)[i]) {
				if !strings.Contains(gohtml.UnescapeString(best), sentence+"</p>") || !strings.Contains(said, sentence) {
					t.Errorf("%s: %q is not on the page or the terminal\n%s\n%s", name, sentence, best, said)
				}
			}
		}
		if !strings.Contains(best, c.want) || !strings.Contains(said, c.want) {
			t.Errorf("%s: no %q\n%s\n%s", name, c.want, best, said)
		}
	}
}
