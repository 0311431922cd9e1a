package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// A flag wins over a configuration file, and that over the environment.
func TestStoresFromTheEnvironment(t *testing.T) {
	newPlace(t, map[string]string{"c.yaml": "redis: embedded\n", "none.yaml": "rounds: 2\n"})
	t.Setenv("QUOTABENCH_REDIS", "redis://:secret@127.0.0.1:1")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "redis: redis://:***@127.0.0.1:1"},
		{[]string{"--config", "none.yaml"}, "redis: redis://:***@127.0.0.1:1"},
		{[]string{"--config", "c.yaml"}, "redis: embedded"},
		{[]string{"--config", "c.yaml", "--redis", "process"}, "redis: process"},
		{[]string{"--redis", "process"}, "redis: process"},
	} {
		o := call(t.Context(), append([]string{"run", "honest", "--print-config"}, c.args...)...)
		if o.code != exit.OK || !strings.Contains(o.stdout, c.want) || strings.Contains(o.stdout, "secret") {
			t.Errorf("%q: no %q in\n%s%s", c.args, c.want, o.stdout, o.stderr)
		}
	}
	// A kind without a flag is as if --store named it, which wins.
	t.Setenv("QUOTABENCH_SERVICE", "http://u:secret@h/x?user={subject}")
	for want, args := range map[string][]string{"service=http://u:***@h/x": nil,
		"service=http://other/": {"--store", "service=http://other/x?user={subject}"}} {
		o := call(t.Context(), append([]string{"run", "honest", "--print-config"}, args...)...)
		if o.code != exit.OK || strings.Count(o.stdout, "  - service=") != 1 || !strings.Contains(o.stdout, want) ||
			strings.Contains(o.stdout, "secret") {
			t.Errorf("%q: no %q in\n%s%s", args, want, o.stdout, o.stderr)
		}
	}
	t.Setenv("QUOTABENCH_SERVICE", "")
	// QUOTABENCH_STORE has several of them.
	t.Setenv("QUOTABENCH_STORE", "service=http://u:secret@h/x?user={subject}\nredis.2=process\n")
	args := []string{"run", "honest", "--print-config", "--store", "redis.2=embedded"}
	if o := call(t.Context(), args...); !strings.Contains(o.stdout, "service=http://u:***@h/x") ||
		!strings.Contains(o.stdout, "- redis.2=embedded") || strings.Contains(o.stdout, "- redis.2=process") {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	t.Setenv("QUOTABENCH_STORE", "nonsense")
	if o := call(t.Context(), "run", "honest"); o.code != exit.Usage || !strings.Contains(o.stderr, "QUOTABENCH_STORE: ") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	t.Setenv("QUOTABENCH_STORE", "")
	if o := call(t.Context(), "doctor"); !strings.Contains(o.stdout, "QUOTABENCH_REDIS=redis://:***@127.0.0.1:1") ||
		strings.Contains(o.stdout, "secret") {
		t.Error(o.stdout)
	}
	t.Setenv("QUOTABENCH_REDIS", "nonsense")
	if o := call(t.Context(), "run", "honest"); o.code != exit.Usage || !strings.Contains(o.stderr, "nonsense") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}

// One JSON document is all that is on standard output.
func TestJSONIsAll(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	for _, args := range [][]string{
		{"run", "honest", "--json", "--requests", "200", "--loop", "closed", "--rounds", "1", "--redis", "embedded",
			"--postgres", "embedded", "--out", "r1"},
		{"sim", "honest", "--json", "--requests", "200", "--out", "s1"},
		{"explore", "honest", "--json", "--instances", "1"},
		{"compare", "r1", "r1", "--json"},
		{"doctor", "--json"}, {"list", "--json"}, {"doctor", "--clean", "--json"},
	} {
		o := call(t.Context(), args...)
		var v any
		d := json.NewDecoder(strings.NewReader(o.stdout))
		if err := d.Decode(&v); err != nil || d.More() {
			t.Errorf("%q: exit %d, %v: %.200s%s", args, o.code, err, o.stdout, o.stderr)
		}
	}
}

// Colour is for terminals, or for who asks, and NO_COLOR wins.
func TestColour(t *testing.T) {
	testenv.Sequential(t)
	for _, c := range []struct {
		no, cli, force string
		want           bool
	}{
		{"", "", "", false}, {"", "1", "", true}, {"", "", "1", true}, {"", "0", "0", false}, {"1", "1", "1", false},
	} {
		newPlace(t, nil)
		t.Setenv("NO_COLOR", c.no)
		t.Setenv("CLICOLOR_FORCE", c.cli)
		t.Setenv("FORCE_COLOR", c.force)
		o := call(t.Context(), "explore", "liar", "--property", "leak")
		if got := strings.Contains(o.stdout, "\x1b[31mLEAK\x1b[0m"); got != c.want ||
			strings.Contains(o.stdout, "\x1b") != c.want {
			t.Errorf("%+v: %q", c, o.stdout)
		}
		if got := strings.Contains(o.stderr+call(t.Context(), "list", "x").stderr,
			"\x1b[31mquotabench:\x1b[0m"); got != c.want {
			t.Errorf("%+v: %q", c, o.stderr)
		}
	}
}

// Without a word about the load, sim takes a preset, whichever strategies and policy are named.
func TestSimAlone(t *testing.T) {
	newPlace(t, nil)
	for args, want := range map[string]string{
		"": "policy: user-links", "honest": "policy: user-links", "honest --policy contact-form": "policy: contact-form",
		"honest --rate 5": "policy: agent-api",
	} {
		o := call(t.Context(), append(append([]string{"sim"}, strings.Fields(args)...), "--print-config")...)
		preset := !strings.Contains(args, "rate")
		if !strings.Contains(o.stdout, want) || strings.Contains(o.stdout, "instances: 4") != preset {
			t.Errorf("%q: %s%s", args, o.stdout, o.stderr)
		}
	}
}
