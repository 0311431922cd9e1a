package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestLists(t *testing.T) {
	p := newPlace(t, nil)
	for name, args := range map[string][]string{
		"list":      {"list"},
		"list-one":  {"list", "stores"},
		"list-json": {"list", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			o := call(t.Context(), args...)
			if o.code != exit.OK || o.stderr != "" {
				t.Errorf("exit %d, stderr %q", o.code, o.stderr)
			}
			golden(t, name, o.transcript())
		})
	}
	p.requireUntouched()
}

func TestListJSON(t *testing.T) {
	var all map[string][]struct {
		Name, Doc string
		Details   map[string]any
	}
	if err := json.Unmarshal([]byte(call(t.Context(), "list", "--json").stdout), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(catalogues) {
		t.Errorf("%d catalogues, want %d", len(all), len(catalogues))
	}
	for _, c := range catalogues {
		if len(all[c.name]) == 0 {
			t.Errorf("no %s", c.name)
		}
		var one []any
		if err := json.Unmarshal([]byte(call(t.Context(), "list", c.name, "--json").stdout), &one); err != nil ||
			len(one) != len(all[c.name]) {
			t.Errorf("list %s has %d entries (%v), want %d", c.name, len(one), err, len(all[c.name]))
		}
	}
}

func TestHelp(t *testing.T) {
	p := newPlace(t, nil)
	var text strings.Builder
	for _, args := range [][]string{
		{}, {"--help"}, {"run", "--help"}, {"run", "--help-all"}, {"list", "--help"}, {"doctor", "--help"},
		{"judge", "--help"}, {"compare", "--help"}, {"report", "--help"}, {"completion", "--help"}, {"completion"},
		{"completion", "fish", "--help"}, {"help"}, {"help", "doctor"}, {"help", "help"},
	} {
		o := call(t.Context(), args...)
		if o.code != exit.OK || o.stderr != "" {
			t.Errorf("%q: exit %d, stderr %q", args, o.code, o.stderr)
		}
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "help", text.String())
	p.requireUntouched()
}

// usageFiles are what the command lines of usageErrors find.
var usageFiles = map[string]string{
	"held/results.json": "{}",
	"file":              "not a directory",
	"folder/x":          "a trace that is a directory",
	"empty.csv":         "",
	"header.csv":        "time,subject,cost\n",
	"useless.csv":       "time,subject,cost\nnever,a,1\n1,,1\n",
	"unnamed.csv":       "when;who\n1;a\n2;b\n",
	"prose.txt":         "this is not a log\nnor is this\n",
}

// usageErrors are command lines that are wrong.
var usageErrors = [][]string{
	{"judge"},
	{"judge", "missing.history"},
	{"judge", "prose.txt"},
	{"run", "--life=-1s"},
	{"run", "--history", "file/h"},
	{"--nonsense"},
	{"rnu"},
	{"redis://:secret@host"},
	{"help", "rnu"},
	{"help", "run", "fast"},
	{"completion", "tcsh"},
	{"completion", "bash", "now"},
	{"list", "nonsense"},
	{"list", "stores", "policies"},
	{"list", "--josn"},
	{"doctor", "now"},
	{"doctor", "--fix"},
	{"run", "now"},
	{"run", "redis://user:secret@host"},
	{"run", "--wrokers", "5"},
	{"run", "--nonsense"},
	{"run", "-w", "5"},
	{"run", "--workers"},
	{"run", "--config"},
	{"run", "--workers=many"},
	{"run", "--workers=1.5"},
	{"run", "--workers=redis://:secret@host"},
	{"run", "--quick=perhaps"},
	{"run", "--print-config=perhaps"},
	{"run", "--duration=5"},
	{"run", "--duration=-1s"},
	{"run", "--budget=0"},
	{"run", "--seed=-1"},
	{"run", "--loop=open:arrivals=bursts"},
	{"run", "--loop=closed:arrivals=constant"},
	{"run", "--loop=opne"},
	{"run", "nonsense"},
	{"run", ""},
	{"run", "honest,honest"},
	{"run", "honest", "liar,honest"},
	{"run", "honest:size=1"},
	{"run", "liar:size=1"},
	{"run", "honest:color=green"},
	{"run", "honest:depth=deep"},
	{"run", "honest", "--trouble", "instance/0:clock=5"},
	{"run", "honest", "--trouble", "instances:paused=5@0.5"},
	{"run", "honest:depth"},
	{"run", "color=red"},
	{"run", "monthly", "--policy", "agent-api", "--redis", "embedded", "--postgres", "embedded"},
	{"run", "sql-only", "--redis", "embedded", "--postgres", "embedded"},
	{"run", "--policy", "nonsense"},
	{"run", "--policy", "@limits, of tenants.yaml"},
	{"run", "all", "--policy", "login", "--redis", "embedded", "--postgres", "embedded"},
	{"run", "--workload", "nonsense"},
	{"run", "--workload", "trace"},
	{"run", "--workload", "steady", "--trace", "useless.csv"},
	{"run", "--workload", "steady:popularity=famous"},
	{"run", "--workload", "hot-key:cost=dear"},
	{"run", "--workload", "hot-key:fill=2"},
	{"run", "--workload", "steady:fil=0.5"},
	{"run", "--workload", "steady:fill"},
	{"run", "--workload", "steady:fill=0.5,fill=0.6"},
	{"run", "--workload", "stedy:fill=0.5"},
	{"run", "--workload", "trace:trace=other.csv", "--trace", "useless.csv"},
	{"run", "--workload", "steady:subjects=5", "--param", "subjects=1,2"},
	{"run", "--workload", "hot-key:subjects=10"},
	{"run", "--workload", "hot-key:speed=2"},
	{"run", "--trace", "missing.log"},
	{"run", "--trace", "folder"},
	{"run", "--trace", "empty.csv"},
	{"run", "--trace", "header.csv"},
	{"run", "--trace", "useless.csv"},
	{"run", "--trace", "prose.txt"},
	{"run", "--trace", "unnamed.csv"},
	{"run", "--trace", "unnamed.csv", "--trace-fields", "time=when,subject=whom"},
	{"run", "--trace", "unnamed.csv", "--trace-fields", "who"},
	{"run", "--workload", "steady", "--trace-fields", "subject=who"},
	{"run", "--trouble", "redis"},
	{"run", "--trouble", "mysql:away@0.3-0.6"},
	{"run", "--trouble", "redis:away@0.6-0.3"},
	{"run", "--trouble", "redis:away@0.3-0.6", "--requests", "100"},
	{"run", "--trouble", "redis:failover@0.5-0.52", "--redis", "embedded", "--postgres", "embedded"},
	{"run", "--out", "held"},
	{"run", "--out", "file"},
	{"run", "--out", "file/below/it"},
	{"run", "--redis", "nonsense"},
	{"run", "--redis", "redis://:secret@127.0.0.1:1"},
	{"run", "--redis", "redis://:sec%zzret@127.0.0.1:1"},
	{"run", "--redis", "embedded", "--postgres", "nonsense"},
	{"run", "--redis", "embedded", "--postgres", "postgres://user:secret@127.0.0.1:1/db"},
	{"run", "--redis", "process:image=redis:7"},
	{"run", "--redis", "container:image="},
	{"run", "--store", "nginx=prcess"},
	{"run", "--store", "service=process"},
	{"run", "--redis", ""},
	{"run", "--store", "redis://user:secret@host"},
	{"run", "--store", "etcd.2=process"},
	{"run", "--store", "redis.2="},
	{"run", "--store", "redis.=process"},
	{"run", "--store", "redis.2=process", "--store", "redis.2=embedded"},
	{"run", "--redis", "embedded", "--store", "redis=embedded"},
	{"run", "--redis", "embedded", "--postgres", "embedded", "--store", "redis.2=redis://user:secret@127.0.0.1:1"},
	{"run", "--postgres", "container:imag=postgres:17"},
	{"run", "--config", "missing.yaml"},
	{"run", "--config", "folder"},
}

func TestUsageErrors(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, usageFiles)
	var text strings.Builder
	for _, args := range usageErrors {
		o := call(t.Context(), args...)
		requireUsageError(t, o)
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "usage", text.String())
	p.requireUntouched()
}

// requireUsageError fails the test unless the command line was refused in one
// line that holds no password.
func requireUsageError(t *testing.T, o outcome) {
	t.Helper()
	if o.code != exit.Usage || o.stdout != "" {
		t.Errorf("%q: exit %d, stdout %q", o.args, o.code, o.stdout)
	}
	line, ok := strings.CutSuffix(o.stderr, "\n")
	if !ok || strings.Contains(line, "\n") || !strings.HasPrefix(line, "quotabench: ") || len(line) < 30 {
		t.Errorf("%q: stderr is %q, not one line", o.args, o.stderr)
	}
	for _, leak := range []string{"secret", "zzret"} {
		if strings.Contains(o.stderr, leak) {
			t.Errorf("%q: the password is shown: %s", o.args, o.stderr)
		}
	}
}

// numeric reports whether a value is a number and nothing else.
func numeric(v *settings.Value) bool {
	return slices.Contains([]string{"int", "float", "duration"}, v.Type())
}

// Every number has bounds, whatever is added to the table.
func TestNumbersHaveBounds(t *testing.T) {
	testenv.Sequential(t)
	p := newPlace(t, nil)
	numbers := 0
	s, _ := newRun()
	for _, x := range s.All() {
		if !numeric(x.Value) {
			continue
		}
		numbers++
		for _, v := range []string{"-1", "NaN", "Inf", "-Inf", "1e999", "", "x", "99999999999999999999999"} {
			// No such strategy: what is let through must not run.
			o := call(t.Context(), "run", "nonsense", "--"+x.Name+"="+v)
			requireUsageError(t, o)
			if !strings.Contains(o.stderr, "--"+x.Name) {
				t.Errorf("--%s=%s is taken: %s", x.Name, v, o.stderr)
			}
			if v == "" || v == "x" || x.FlagOnly {
				continue
			}
			v = strings.NewReplacer("NaN", ".nan", "Inf", ".inf").Replace(v)
			if err := os.WriteFile("bad.yaml", []byte(x.Name+": "+v+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			o = call(t.Context(), "run", "nonsense", "--config", "bad.yaml")
			requireUsageError(t, o)
			if !strings.Contains(o.stderr, "bad.yaml:1: "+x.Name) {
				t.Errorf("%s: %s is taken: %s", x.Name, v, o.stderr)
			}
		}
	}
	if numbers < 10 {
		t.Errorf("only %d numbers found in the table", numbers)
	}
	if err := os.Remove("bad.yaml"); err != nil {
		t.Fatal(err)
	}
	p.requireUntouched()
}
