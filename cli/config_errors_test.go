package cli

import (
	"os"
	"strings"
	"testing"
)

// configErrors are files that are wrong for a run, each in one place. Package settings has those that are wrong for any
// command.
var configErrors = []string{
	"workers: 0\n",
	"workers: 20001\n",
	"print-config: true\n",
	"rounds: -1\n",
	"requests: 1e3\n",
	"rate: .nan\n",
	"rate: .inf\n",
	"workload: steady:fill=2\n",
	"workload: steady:over-quota=50%\n",
	"seed: -1\n",
	"duration: 400\n",
	"duration: soon\n",
	"duration: -1s\n",
	"loop: open:arrivals=bursts\n",
	"policy: true\n",
	"policy: [a, b]\n",
	"strategy: 5\n",
	"strategy:\n  - nonsense\n",
	"# one\n\nstrategy:\n  - honest:color=green\n",
	"policy: nonsense\n",
	"workload: nonsense\n",
	"trace: missing.log\n",
	"workload: trace\n",
	"trouble:\n  - redis:away@0.9-0.1\n",
	"redis: embedded\nredis-image: redis:7\n",
	"redis: \"redis://:secret@127.0.0.1:1\"\n",
	"redis: {url: \"redis://:secret@127.0.0.1:1\"}\n",
	"\"redis://:secret@host\": 5\n",
	"out: held\n",
}

func TestConfigErrors(t *testing.T) {
	p := newPlace(t, map[string]string{"bad.yaml": "", "held/results.json": "{}"})
	var text strings.Builder
	for _, config := range configErrors {
		if err := os.WriteFile("bad.yaml", []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		o := call(t.Context(), "run", "--config", "bad.yaml")
		requireUsageError(t, o)
		if line, _, _ := strings.Cut(strings.TrimPrefix(o.stderr, "quotabench: bad.yaml:"), ":"); strings.HasPrefix(o.stderr,
			"quotabench: bad.yaml:") &&
			(line == "0" || strings.Trim(line, "0123456789") != "") {
			t.Errorf("%q: no line in %s", config, o.stderr)
		}
		text.WriteString("bad.yaml\n  " +
			strings.ReplaceAll(strings.TrimSuffix(strings.ToValidUTF8(config, "?"), "\n"), "\n", "\n  ") + "\n" + o.stderr +
			"\n")
	}
	golden(t, "config-errors", text.String())
	p.requireUntouched()
}

// A bad value is refused in the same words wherever it stands.
func TestErrorsOfFlagsAndFilesAreTheSame(t *testing.T) {
	newPlace(t, nil)
	for name, v := range map[string]string{
		"workers": "0", "rounds": "1001", "rate": "-1", "seed": "-5", "duration": "-1s", "budget": "0",
		"loop":   "open:arrivals=bursts",
		"policy": "nonsense", "workload": "steady:fill=1.5", "trouble": "nonsense", "trace": "missing.log",
	} {
		if err := os.WriteFile("bad.yaml", []byte("# bad\n"+name+": "+v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		flag := call(t.Context(), "run", "--"+name+"="+v).stderr
		file := call(t.Context(), "run", "--config", "bad.yaml").stderr
		if want := strings.Replace(flag, "--"+name, "bad.yaml:2: "+name, 1); file != want {
			t.Errorf("in a file: %s, as a flag: %s", file, flag)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, c := range configErrors {
		f.Add([]byte(c))
	}
	for _, text := range []string{
		"", "nulls: ~\n", "workers: [5\n", "workers: {a: b}\n", "workers: *five\n", "workers: !!str 5\n", "- workers\n",
		"run: &a {workers: 5}\nrun:\n", "? [a]\n: 5\n", "workers: 5\n---\nworkers: 6\n", "<<: {workers: 5}\n", "\x00\xff",
	} {
		f.Add([]byte(text))
	}
	f.Add([]byte("strategy:\n  - honest\nworkers: 5 # five\nduration: 0\nworkload: |-\n  steady:cost=policy\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := newRun()
		if err := s.ReadBytes("run.yaml", b); err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("not one line: %q", err)
			}
			return
		}
		// What was taken is within bounds, and says so again.
		for _, x := range s.All() {
			if x.Value.Items() != nil || !s.Given(x.Name) {
				continue
			}
			v := x.Value.String()
			again, _ := newRun()
			if err := again.Lookup(x.Name).Value.Set(v); err != nil {
				t.Errorf("%s was set to %q: %v", x.Name, v, err)
			}
		}
	})
}
