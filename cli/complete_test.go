package cli

import (
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// completions are what the shell is offered, without descriptions, and the
// directive that follows them.
func completions(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	o := call(t.Context(), append([]string{"__complete"}, args...)...)
	if o.code != exit.OK {
		t.Fatalf("%q: exit %d: %s", args, o.code, o.stderr)
	}
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	for _, l := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(l, "\t")
		words = append(words, word)
	}
	return words, lines[len(lines)-1]
}

const (
	filesToo    = ":0"
	noFilesOnly = ":4"
	noSpace     = ":6"
)

func TestCompletion(t *testing.T) {
	newPlace(t, nil)
	var policies, streams []string
	for _, p := range quota.Policies() {
		policies = append(policies, p.Name)
	}
	for _, m := range workloads.All() {
		streams = append(streams, m.Name)
	}
	all := []string{"completion"}
	for _, g := range commands() {
		for _, command := range g.commands {
			all = append(all, command().Name())
		}
	}
	slices.Sort(all)
	for _, x := range []struct {
		args      []string
		want      []string
		directive string
	}{
		{[]string{""}, all, noFilesOnly},
		{[]string{"list", ""}, []string{"strategies", "workloads", "policies", "stores", "formats", "presets", "claims"}, noFilesOnly},
		{[]string{"list", "stores", ""}, nil, noFilesOnly},
		{[]string{"help", ""}, slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return name == "help"
		}), noFilesOnly},
		{[]string{"run", ""}, []string{"core", "all", "broken", "honest", "liar", "monthly", "sql-only"}, noSpace},
		{[]string{"run", "--policy", ""}, policies, noFilesOnly},
		{[]string{"run", "--workload", ""}, streams, noFilesOnly},
		{[]string{"run", "--workload", "steady:"},
			[]string{"steady:subjects=", "steady:popularity=", "steady:cost=", "steady:fill=", "steady:over-quota="}, noSpace},
		{[]string{"sim", "--workload", "steady:subjects=5,popularity="},
			[]string{"steady:subjects=5,popularity=single", "steady:subjects=5,popularity=uniform",
				"steady:subjects=5,popularity=zipf", "steady:subjects=5,popularity=hot:"}, noSpace},
		{[]string{"run", "--workload", "nonsense:"}, nil, noFilesOnly},
		{[]string{"run", "--loop", ""}, []string{"both", "closed", "open"}, noFilesOnly},
		{[]string{"sim", "--loop", "open:"}, []string{"open:arrivals="}, noSpace},
		{[]string{"run", "--loop", "open:arrivals="}, []string{"open:arrivals=poisson", "open:arrivals=constant"}, noSpace},
		{[]string{"run", "--client", "pool=8,"},
			[]string{"pool=8,pool=", "pool=8,retries=", "pool=8,cold="}, noSpace},
		{[]string{"sim", "--client", ""}, []string{"cold="}, noSpace},
		{[]string{"run", "--redis", ""}, []string{
			"auto", "process", "container", "container:image=redis:8", "embedded", "process:replicas=1", "process:cluster=3",
			"process:sentinel=3", "process:durable", "process:maxmemory=8mb,policy=allkeys-lru", "redis://", "cluster:redis://",
			"sentinel:redis://",
		}, noSpace},
		{[]string{"run", "--postgres", ""},
			[]string{"auto", "process", "process:connections=40", "container", "container:image=postgres:18", "embedded",
				"none", "postgres://"}, noSpace},
		{[]string{"run", "--trace", ""}, nil, filesToo},
		{[]string{"run", "--out", ""}, nil, filesToo},
		{[]string{"run", "--config", ""}, nil, filesToo},
		{[]string{"run", "liar,"}, []string{"liar,core", "liar,all", "liar,broken", "liar,honest", "liar,liar",
			"liar,monthly", "liar,sql-only"}, noSpace},
		{[]string{"run", "honest:"}, []string{"honest:color=", "honest:depth="}, noSpace},
		{[]string{"run", "liar,honest:"}, []string{"liar,honest:color=", "liar,honest:depth="}, noSpace},
		{[]string{"run", "honest:color="}, []string{"honest:color=red", "honest:color=blue"}, noSpace},
		{[]string{"run", "honest:depth="}, []string{"honest:depth=3"}, noSpace},
		{[]string{"run", "liar,honest:color=red,dep"}, []string{"liar,honest:color=red,depth="}, noSpace},
		{[]string{"run", "honest:color=red,depth=3,color="},
			[]string{"honest:color=red,depth=3,color=red", "honest:color=red,depth=3,color=blue"}, noSpace},
		{[]string{"run", "nonsense:"}, nil, noFilesOnly},
	} {
		got, directive := completions(t, x.args...)
		// The shell drops what does not begin as typed.
		got = slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, x.args[len(x.args)-1]) })
		if !slices.Equal(got, x.want) || directive != x.directive {
			t.Errorf("%q offers %q %s, want %q %s", x.args, got, directive, x.want, x.directive)
		}
	}
}

// Every flag says what can follow it, whatever is added to the table.
func TestEveryTextFlagCompletes(t *testing.T) {
	files := []string{"trace", "out", "history", "against"}
	s, _ := newRun()
	for _, x := range s.All() {
		if x.Value.Type() == "string" && x.Complete == nil && !strings.Contains(x.Value.Wants(), " or ") && !x.FlagOnly &&
			!slices.Contains(files, x.Name) {
			t.Errorf("--%s offers the names of files", x.Name)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		o := call(t.Context(), "completion", shell)
		if o.code != exit.OK || o.stderr != "" || !strings.Contains(o.stdout, "quotabench") {
			t.Errorf("%s: exit %d, %d bytes, stderr %q", shell, o.code, len(o.stdout), o.stderr)
		}
		if shell == "powershell" {
			continue
		}
		t.Run(shell, func(t *testing.T) {
			cmd := exec.Command(testenv.Program(t, shell), "-n") // read it, do nothing
			cmd.Stdin = strings.NewReader(o.stdout)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s cannot read its script: %v: %s", shell, err, out)
			}
		})
	}
}

// TestCommandsGo: a program may make many commands, and none is kept.
func TestCommandsGo(t *testing.T) {
	c := Command(io.Discard, io.Discard)
	kept := map[string]weak.Pointer[pflag.Flag]{}
	for _, sub := range c.Commands() {
		sub.Flags().VisitAll(func(f *pflag.Flag) { kept[sub.Name()+" --"+f.Name] = weak.Make(f) })
	}
	if len(kept) < 50 {
		t.Fatalf("%d flags", len(kept))
	}
	runtime.KeepAlive(c)
	for range 2 {
		runtime.GC()
	}
	for name, f := range kept {
		if f.Value() != nil {
			t.Errorf("%s is kept", name)
		}
	}
}
