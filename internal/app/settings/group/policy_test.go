package group

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

func TestPolicyText(t *testing.T) {
	for text, want := range map[string]string{
		"1 e-mails per rolling 1h": "1 e-mail per rolling 1h", "1 boxes at a time": "1 box at a time",
		"1 MB at a time":               "1 MB at a time",
		"1 entries refilling 1 per 1s": "1 entry refilling 1 per 1s",
		"2000 hits per calendar day":   "2,000 hits per calendar day",
	} {
		if p, err := quota.ParsePolicy(text); err != nil || PolicyText(&p) != want {
			t.Errorf("%q: %q, %v; want %q", text, PolicyText(&p), err, want)
		}
	}
}

// TestTwoWindows: two policies stand next to each other in several ways, and a comma before a burst is none of them.
func TestTwoWindows(t *testing.T) {
	for text, want := range map[string]string{
		"10/s and 1000/h":    "10-requests-per-fixed-1s, 1000-requests-per-fixed-1h",
		"10/s, 1,000/h":      "10-requests-per-fixed-1s, 1000-requests-per-fixed-1h",
		"10/s; 1000 per h":   "10-requests-per-fixed-1s, 1000-requests-per-fixed-1h",
		"10 req/s, burst 20": "20-requests-refilling-10-per-1s, ",
	} {
		s := New(Run)
		s.Policy = text
		first, second, err := s.BothPolicies()
		if got := first.Name + ", " + second.Name; err != nil || got != want {
			t.Errorf("%s: %q and %v, want %q", text, got, err, want)
		}
	}
}

func TestReadPolicy(t *testing.T) {
	got, err := readPolicy("p.yaml", []byte("limit: 500\nunit: tokens\nwindow: rolling\nlength: 7d\n"+
		"costs: [1, 5]\ndoc: of a "+
		"tenant\n"))
	want := quota.Policy{Name: "500-tokens-per-rolling-168h-costing-1-or-5", Doc: "of a tenant", Limit: 500,
		Unit: "tokens", Costs: []int64{1, 5},
		Window: quota.Window{Kind: quota.Rolling, Length: 168 * time.Hour}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	got, err = readPolicy("p.yaml", []byte("name: boxes\nlimit: 5\nunit: boxes\nwindow: standing\nhold: 30m\n"))
	if err != nil || got.Name != "boxes" || got.Hold != 30*time.Minute || got.Window.Kind != quota.Standing {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = readPolicy("p.yaml", []byte("limit: 5\nunit: calls\nwindow: calendar-day\nlocation: Europe/Berlin\n"))
	if err != nil || got.Window.Location == nil || got.Window.Location.String() != "Europe/Berlin" {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                   "window is missing",
		"limit: 5\nunit: calls\n":            "window is missing",
		"limit: 5\nunit: c\nwindow: weekly":  `unknown window kind "weekly"`,
		"limit: 5\nunit: c\nwindow: fixed":   "the length of its fixed window is 0s",
		"limit: 5\nburst: 3\n":               "p.yaml:2: unknown field",
		"limit: many\n":                      "p.yaml:1: ",
		"- 5":                                "p.yaml:1: ",
		"unit: c\nwindow: fixed\nlength: 1y": `length "1y"`,
		"limit: 0\nwindow: standing":         "the limit is 0, not from 1 to 1152921504606846976; the unit",
		"limit: 5\nlocation: Nowhere\nunit: c\nwindow: calendar-day": "unknown time zone",
	} {
		if _, err := readPolicy("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", text, err, want)
		}
	}
}

func newRun(policy string) *Settings {
	s := New(Run)
	s.Register(&cobra.Command{}, s.Subject(), s.Stream(), s.Load(), s.Trouble(), s.Stores())
	s.Policy = policy
	return s
}

// TestOwnPolicies runs the command line with policies that are registered nowhere.
func TestOwnPolicies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("limit: 7\nunit: calls\nwindow: fixed\nlength: 2h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"@" + file:                   "7 calls per fixed 2h",
		"9 calls per rolling 45m":    "9 calls per rolling 45m",
		"login":                      "5 attempts per rolling 15m",
		"9-calls-per-calendar-month": "9 calls per calendar month",
	} {
		c, err := newRun(text).Plan()
		if err != nil || c.Policy.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, c.Policy, err, want)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("limit: 0\nunit: calls\nwindow: standing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"@" + bad:       "bad.yaml: the limit is 0",
		"@none.yaml":    "--policy: cannot read none.yaml: no such file",
		"logon":         "did you mean login?",
		"9 calls often": "give one such as",
	} {
		if _, err := newRun(text).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzReadPolicy reads policies of files. What is taken can be served, and said again.
func FuzzReadPolicy(f *testing.F) {
	for _, text := range []string{
		"limit: 500\nunit: tokens\nwindow: rolling\nlength: 7d\ncosts: [1, 5]\ndoc: of a tenant\n",
		"name: boxes\nlimit: 5\nunit: boxes\nwindow: standing\nhold: 30m\n",
		"limit: 9223372036854775807\nwindow: bucket\nlength: 1ns\nrefill: 9223372036854775807\n",
		"limit: -1\nwindow: fixed\nlength: .nan\n", "window: calendar-day\nlimit: 1\nlocation: ../../etc/passwd\n",
		"name: \"a\\e[31m\"\nlimit: 1\nwindow: rolling\nlength: 1h\n", "limit: 1\nwindow: rolling\nlength: 1h\n---\nlimit: 2\n",
		"a0: &a {k: v}\na1: &b {<<: [*a, *a]}\nlimit: *b\n", "- 1", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := readPolicy("p.yaml", data)
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Errorf("%q is no line", err)
		case err == nil && (policy.Validate() != nil || policy.Name == "" || PolicyText(&policy) == ""):
			t.Errorf("%+v is taken", policy)
		}
	})
}
