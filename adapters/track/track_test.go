package track

import (
	"cmp"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/testenv"
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

// steps are those of the rows of the page, by name.
func steps(t *testing.T, text string) map[string]int {
	t.Helper()
	out := map[string]int{}
	names := regexp.MustCompile(`(?m)^\|(?:\[([^]]+)\]\([^)]*\)|([^|]+))\|.*\|(\d+)\|(?:[^|]*\|)?$`)
	for _, m := range names.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		out[cmp.Or(m[1], m[2])] = n
	}
	return out
}

// TestStillFound: each defect is found in no more steps than the page says.
func TestStillFound(t *testing.T) {
	testenv.Long(t) // make -C tools track-record makes the same searches
	known := steps(t, page(t))
	for i := range findings {
		f := &findings[i]
		t.Run(f.name, func(t *testing.T) {
			if f.property == "" {
				return // a race of a machine: package confirm and TestConformance repeat them
			}
			n, err := f.shortest()
			if err != nil {
				t.Fatal(err)
			}
			if n > known[f.name] {
				t.Errorf("found in %d steps, and the page says %d", n, known[f.name])
			}
		})
	}
}

// TestPageIsUpToDate: with the steps that it has, the page is what the findings render to.
func TestPageIsUpToDate(t *testing.T) {
	text := page(t)
	goMod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := Render(goMod, steps(t, text)); text != string(want) {
		t.Errorf("the page is out of date: make -C tools track-record; it would be\n%s", want)
	}
	version := versions(goMod)
	for i := range findings {
		if version[findings[i].module] == "" {
			t.Errorf("go.mod requires no %s", findings[i].module)
		}
	}
	for _, m := range strategies.All() {
		if (strings.HasPrefix(m.Name, "lib-") || strings.HasPrefix(m.Name, "gw-")) && !strings.Contains(text, m.Name) {
			t.Errorf("the page does not mention %s", m.Name)
		}
	}
}
