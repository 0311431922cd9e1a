package strategies

import (
	"fmt"
	"strings"
	"testing"
)

// asking is a Meta that asks a Redis.
func asking(name string) Meta {
	m := complete(name)
	m.Needs = []Need{"redis.2"}
	return m
}

func TestParseClient(t *testing.T) {
	withRegistry(t, asking("a"), asking("ab"), complete("exact"), complete("tiers", testOptions...))
	for _, c := range []struct{ list, want, err string }{
		{list: "a@autopipeline", want: "a@autopipeline"},
		{list: "a@plain", want: "a"},
		{list: "a,a@autopipeline", want: "a a@autopipeline"},
		{list: "a@autopipeline,exact", want: "a@autopipeline exact"},
		{list: "exact@plain", want: "exact"},
		{list: "all@autopipeline", want: "a@autopipeline ab@autopipeline exact tiers"},
		{list: "a*@autopipeline,a*", want: "a@autopipeline ab@autopipeline a ab"},
		{list: "a,a@plain", err: "a is given twice"},
		{list: "a@autopipelin", err: `"a@autopipelin": unknown kind of client "autopipelin": did you mean autopipeline? It is one of plain, autopipeline`},
		{list: "a@", err: "unknown kind of client"},
		{list: "exact@autopipeline", err: "strategy exact asks no Redis: it has no client of the kind autopipeline"},
		{list: "tiers:note=a@b", want: "tiers:note=a@b"},
		{list: "all@plain:sync=1s", err: `strategy a: no option "sync"`},
		{list: "t*@autopipeline:sync=1s,pool=2,a*@autopipeline", want: "tiers:pool=2,sync=1s a@autopipeline ab@autopipeline"},
	} {
		chosen, err := Parse(c.list)
		got := strings.Trim(fmt.Sprint(chosen), "[]")
		if c.err == "" && (err != nil || got != c.want) || c.err != "" &&
			(err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v; want %q, %q", c.list, got, err, c.want, c.err)
		}
		if c.err == "" {
			var labels []string
			for _, s := range chosen {
				labels = append(labels, s.String())
			}
			if again, err := Parse(strings.Join(labels, ",")); err != nil || fmt.Sprint(again) != fmt.Sprint(chosen) {
				t.Errorf("%s: the labels %q are read as %v (%v)", c.list, labels, again, err)
			}
		}
	}
}

func TestWithClients(t *testing.T) {
	withRegistry(t, asking("a"), asking("b"), complete("exact"))
	for _, c := range []struct {
		list  string
		kinds []Client
		want  string
	}{
		{"a,exact", Clients(), "[a a@autopipeline exact]"},
		{"a,exact", []Client{AutoPipeline}, "[a@autopipeline exact]"},
		{"a@plain,b", []Client{AutoPipeline}, "[a b@autopipeline]"},
		{"a@autopipeline,a", Clients(), "[a@autopipeline a]"},
	} {
		chosen, err := Parse(c.list)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(WithClients(chosen, c.kinds)); got != c.want {
			t.Errorf("%s with %v: %s, want %s", c.list, c.kinds, got, c.want)
		}
	}
}

// TestClientIsMeasuredAlone: what has steps and times of its own is not simulated, nor
// explored.
func TestClientIsMeasuredAlone(t *testing.T) {
	withRegistry(t, asking("a"))
	for list, want := range map[string]bool{"a": false, "a@plain": false, "a@autopipeline": true} {
		chosen, err := Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range Modes() {
			if _, not := chosen[0].Excludes(mode); not != (want && mode != ModeMeasure) {
				t.Errorf("%s in the mode %s: excluded is %v", list, mode, not)
			}
		}
	}
}
