package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
)

// simulations leaves two simulations of one seed, of which the second was changed.
func simulations(t *testing.T, change func(*results.File)) {
	t.Helper()
	for _, dir := range []string{"base", "head"} {
		// liar lies
		if o := call(t.Context(), "sim", "honest", "liar", "--requests", "300", "--out", dir); o.code != exit.Gate {
			t.Fatalf("exit %d: %s", o.code, o.stderr)
		}
	}
	f, err := codec.Read("head/" + files.ResultsName)
	if err != nil {
		t.Fatal(err)
	}
	change(&f)
	if err := codec.Write("head/"+files.ResultsName, f); err != nil {
		t.Fatal(err)
	}
}

func run(f *results.File, label string) *results.Run {
	for i := range f.Runs {
		if f.Runs[i].Params.Label == label {
			return &f.Runs[i]
		}
	}
	return nil
}

func TestCompare(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, map[string]string{
		"gates.yaml":  "require: [leak<=0, drift <= 5]\ntolerance: leak=2\n",
		"wrong.yaml":  "strict: true\nrequire: leek<=0\n",
		"wrong2.yaml": "tolerances: leak=2\n",
	})
	summary := "summary.md"
	t.Setenv(summaryVariable, summary)
	simulations(t, func(f *results.File) {
		run(f, "honest").Leak.Units++
		run(f, "liar").Leak.Units -= 4
	})
	var text strings.Builder
	for _, c := range []struct {
		code int
		args []string
	}{
		{exit.OK, []string{"base", "base"}},
		{exit.Gate, []string{"base", "head"}},
		{exit.Gate, []string{"base", "head", "--format", "markdown"}},
		{exit.Gate, []string{"base", "head", "--format", "github"}},
		{exit.OK, []string{"base", "head", "--tolerance", "leak=1"}},
		{exit.Gate, []string{"base", "head", "--tolerance", "leak=1", "--require", "throughput>=5"}},
		{exit.OK, []string{"base", "head", "--tolerance", "leak=1", "--require", "throughput>=5", "--undecided", "pass"}},
		{exit.Gate, []string{"base", "head", "--tolerance", "leak=1", "--require", "throughput>=5", "--strict"}},
		{exit.Gate, []string{"base", "head", "--config", "gates.yaml"}},
		{exit.Usage, []string{"base", "head", "--config", "wrong.yaml"}},
		{exit.Usage, []string{"base", "head", "--config", "wrong2.yaml"}},
		{exit.Usage, []string{"base", "head", "--require", "leak<"}},
		{exit.Usage, []string{"base", "head", "--require", "leak/reference<=1"}},
		{exit.Usage, []string{"base", "head", "--require", "leak<lots"}},
		{exit.Usage, []string{"base", "head", "--require", "leak=>1"}},
		{exit.Usage, []string{"base", "head", "--tolerance", "leek=1"}},
		{exit.Usage, []string{"base", "head", "--tolerance", "leak=many"}},
		{exit.Usage, []string{"base", "head", "--tolerance", "p99=2"}},
		{exit.Usage, []string{"base", "head", "--format", "jsn"}},
		{exit.Usage, []string{"base"}},
		{exit.Usage, []string{"base", "none"}},
		{exit.Usage, []string{"base", "gates.yaml"}},
	} {
		o := call(t.Context(), append([]string{"compare"}, c.args...)...)
		if o.code != c.code {
			t.Errorf("%q: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
		text.WriteString(o.transcript() + "\n")
	}
	golden(t, "compare", text.String())
	b, err := os.ReadFile(summary)
	if err != nil || strings.Count(string(b), "**FAIL") != 1 {
		t.Errorf("the job's summary is %q (%v)", b, err)
	}
	if o := call(t.Context(), "compare", "base", "head", "--format", "json"); !strings.Contains(o.stdout, `"figure": "leak"`) {
		t.Errorf("%s", o.stdout)
	}
}

// TestGates: the same conditions hold for what run, sim and explore find alone.
func TestGates(t *testing.T) {
	testenv.Sequential(t)
	newPlace(t, nil)
	var text strings.Builder
	for _, c := range []struct {
		code int
		args []string
	}{
		{exit.OK, []string{"sim", "honest", "--instances", "1", "--requests", "200", "--require", "leak=none"}},
		{exit.Gate, []string{"sim", "honest", "--instances", "1", "--requests", "200", "--require", "leak > 0"}},
		{exit.Usage, []string{"sim", "honest", "--instances", "1", "--requests", "200", "--require", "p99<=1ms"}},
		{exit.Gate, []string{"sim", "liar", "--requests", "200", "--require", "leak-worst<=3", "--require",
			"false-rejects=none"}},
		{exit.Usage, []string{"run", "honest", "--require", "leek<=1"}},
		{exit.Usage, []string{"explore", "honest", "--require", "leek=none"}},
		{exit.Usage, []string{"explore", "honest", "--property", "drift", "--require", "leak=none"}},
		{exit.Usage, []string{"explore", "honest", "--full", "--require", "leak=none"}},
	} {
		o := call(t.Context(), append(c.args, "--out", t.TempDir())...)
		if o.code != c.code {
			t.Errorf("%q: exit %d, want %d: %s", c.args, o.code, c.code, o.stderr)
		}
		last := strings.TrimSpace(o.stderr)
		text.WriteString(strings.Join(c.args, " ") + "\n  " + last[strings.LastIndex(last, "\n")+1:] + "\n")
	}
	for _, want := range []string{
		"quotabench: honest: required leak > 0: fails: leak is 0",
		"broke its declared guarantee in round 1", "; liar: required leak-worst<=3: fails: leak-worst is",
		`--require: "leek<=1": unknown field "leek": did you mean leak?`, `unknown field "leak": one of counterexamples, steps, drift`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
