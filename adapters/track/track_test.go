package track

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/strategies"
)

func TestMain(m *testing.M) {
	harness.ServeIsolated()
	os.Exit(m.Run())
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What was found stays found, in no more steps than the page says.
func TestStillFound(t *testing.T) {
	testenv.Long(t) // make -C tools track-record makes the same searches
	text := page(t)
	for i := range findings {
		f := &findings[i]
		t.Run(f.name, func(t *testing.T) {
			row := regexp.MustCompile(`(?m)^\| \[` + f.name + `\].* \| (\d+|-) \| [^|]* \|$`).FindStringSubmatch(text)
			if row == nil {
				t.Fatal("the page has no row: make -C tools track-record")
			}
			if f.property == "" {
				return // a race of a machine: package confirm and TestConformance repeat them
			}
			most, err := strconv.Atoi(row[1])
			if err != nil {
				t.Fatal(err)
			}
			e, err := f.evidence()
			if err != nil {
				t.Fatal(err)
			}
			if e.steps > most || e.steps == 0 {
				t.Errorf("found in %d steps, and the page says %d", e.steps, most)
			}
		})
	}
}

// A page that is of another state of the findings is out of date.
func TestPageIsUpToDate(t *testing.T) {
	text := page(t)
	goMod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := versions(goMod)
	has := func(part string) {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q: make -C tools track-record", part)
		}
	}
	has(languages)
	for i := range findings {
		f := &findings[i]
		has(short(f.module) + " " + version[f.module] + ". " + f.broken)
		has(f.when)
		if f.related != "" {
			has("<" + f.related + "> " + f.known + ".")
		}
		if f.command != nil {
			has("\n    " + line(f.command) + "\n")
		}
	}
	for _, l := range limits {
		has("**" + short(l.module) + " " + version[l.module] + ".** " + l.text)
	}
	for _, l := range left {
		has("**" + l.name + ".** " + l.why)
	}
	for _, r := range rebuilt {
		has(r.text)
		has("\n    " + line(r.command) + "\n")
	}
	for _, m := range strategies.All() {
		if (strings.HasPrefix(m.Name, "lib-") || strings.HasPrefix(m.Name, "gw-")) && !spoken(m.Name) {
			t.Errorf("the page says nothing of %s", m.Name)
		}
	}
}

// spoken reports whether a command on the page is about a strategy.
func spoken(name string) bool {
	for i := range findings {
		if len(findings[i].command) > 1 && findings[i].command[1] == name {
			return true
		}
	}
	for _, c := range clean {
		if c.strategy == name {
			return true
		}
	}
	for _, r := range rebuilt {
		if r.command[1] == name {
			return true
		}
	}
	for _, l := range limits {
		if l.strategy == name {
			return true
		}
	}
	return false
}
