package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// A find of a library says under which limit and window it was made, in words; that of a
// strategy with a policy of its own does not.
func TestSearchSaysThePolicy(t *testing.T) {
	const words = "found with a limit of 1 request refilling 2 per 3s"
	for window, finds := range map[string]bool{"refilling 2 per 3s": true, "": true, "per fixed 1h": false} {
		r := &results.Search{Strategy: "mine", Policy: "1-request-refilling-2-per-3s", Limit: 1, Unit: "requests",
			Window: window}
		if finds {
			r.Findings = []results.Finding{{Property: "leak", Detail: "2 requests in use"}}
		}
		var b bytes.Buffer
		if err := Search(&b, layout.Page{}, r, ""); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(b.String()), " ")
		if got := strings.Contains(text, words); got != (finds && window != "") ||
			!strings.Contains(text, strings.TrimSpace("with a limit of 1 request "+window)) {
			t.Errorf("window %q:\n%s", window, &b)
		}
	}
}

// Counts have commas between thousands.
func TestCountsOfSchedules(t *testing.T) {
	c := &results.Census{Clients: 2, Schedules: 12_345, Leaking: 6_789, Complete: true,
		ServerFacts: results.ServerFacts{Store: "PostgreSQL", Waited: 1_234,
			Aborts: []results.Abort{{Kind: "deadlock", Schedules: 5_678}}}}
	text := strings.Join(censusFacts(c), "\n") + strings.Join(searchFacts(&results.Search{States: 20_000, Runs: 37_295}),
		"\n")
	for _, want := range []string{"every schedule of 2 clients: 12,345, of which 6,789 leak",
		"lock: 1,234; with a deadlock: 5,678", "20,000 states in 37,295 runs"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// A search that finds nothing but what an earlier one found does not say that it found nothing.
func TestSearchSaysWhatIsFoundAgain(t *testing.T) {
	for again, want := range map[string]string{
		"":                "mine: PASS: no violation in any order of 0 callers.",
		"leak in 6 steps": "mine: PASS: no other violation in any order of 0 callers; found again: leak in 6 steps.",
	} {
		var b bytes.Buffer
		err := Search(&b, layout.Page{}, &results.Search{Strategy: "mine", Runs: 1, Claim: "none"}, again)
		if line, _, _ := strings.Cut(b.String(), "\n"); err != nil || line != want {
			t.Errorf("%q: %v: %s", again, err, line)
		}
	}
}

// What ran no schedule says so, and nothing else of the strategy.
func TestNothingTried(t *testing.T) {
	var b bytes.Buffer
	err := Search(&b, layout.Page{}, &results.Search{Strategy: "mine", Capped: "its time of 1ms was up"}, "")
	if line, _, _ := strings.Cut(b.String(), "\n"); err != nil ||
		line != "mine: nothing was tried: its time of 1ms was up." {
		t.Errorf("%v: %s", err, line)
	}
	if facts := censusFacts(&results.Census{Clients: 2}); facts[1] != "no schedule of 2 clients was tried" {
		t.Errorf("%q", facts)
	}
}

// What a window would add is said of a service that was searched without one, and how many requests came before.
func TestUntriedOfAService(t *testing.T) {
	const window = "a TTL that is too short"
	search := results.Search{Claim: "no violation", Clients: 1, Instances: 1, Used: 9, Passes: true, Runs: 1}
	for _, service := range []string{"", "node app.js"} {
		for _, property := range []results.Property{"ttl", "false-reject"} {
			search.Service = service
			search.Properties = []results.Property{property}
			var out bytes.Buffer
			exploration := &results.Exploration{Searches: []*results.Search{&search}}
			if err := Untried(&out, layout.Page{}, exploration); err != nil {
				t.Fatal(err)
			}
			want := service != "" && property == "false-reject"
			if strings.Contains(out.String(), "thousands of subjects") != (service != "") {
				t.Errorf("service %q: %s", service, out.String())
			}
			if said := strings.Contains(out.String(), window); said != want {
				t.Errorf("service %q, %s: %s", service, property, out.String())
			}
		}
	}
	if line := searchAnswer(&search, ""); !strings.Contains(line, "1 caller after 9 requests") {
		t.Error(line)
	}
	search.OtherSubjects = 2_817
	var out bytes.Buffer
	if err := Untried(&out, layout.Page{}, &results.Exploration{Searches: []*results.Search{&search}}); err != nil {
		t.Fatal(err)
	}
	line := searchAnswer(&search, "")
	if strings.Contains(out.String(), "thousands") || !strings.Contains(line, "requests of 2,817 other subjects") {
		t.Errorf("%s: %s", line, out.String())
	}
}
