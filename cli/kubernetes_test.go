package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

// TestKubernetes: what cannot be meant is refused before anything is written, and no password is.
func TestKubernetes(t *testing.T) {
	p := newPlace(t, map[string]string{"plan.yaml": "requests: 70\n", "p.yaml": "policy: x\n"})
	pods := []string{"kubernetes", "--generators", "3", "--image", "q"}
	for want, args := range map[string][]string{
		"takes the command that pods share": {},
		"not \"merge\"":                     {"merge"},
		"leave it out, and put it into":     {"run", "honest", "--redis", "redis://:geheim@host"},
		"--out: a pod has no use":           {"run", "honest", "--out", "x"},
		"a pod does not have that file":     {"run", "honest", "--policy", "@p.yaml"},
		"unknown strategy":                  {"run", "nonsense"},
		"--claim: the records of parts":     {"sim", "honest"},
		"--name: give 1 to 40":              {"--name", "A_b", "run", "honest"},
		"--cpus: give a quantity":           {"--cpus", "a lot", "run", "honest"},
		"--secret: give lower-case":         {"--secret", "a\nb", "run", "honest"},
		"(see quotabench run --help)":       {"run", "--nonsense"},
		"did you mean --rate?":              {"run", "--rat", "5"},
		"give a whole number from 1":        {"--generators", "0", "run", "honest"},
		"a whole number from 1 to 1000":     {"--generators", "1001", "run", "honest"},
		"--memory: give a quantity":         {"--memory", "1 GB", "run", "honest"},
		"--claim: give lower-case":          {"--claim", "A", "run", "honest"},
		"no strategy to explore":            {"--claim", "c", "explore"},
		"--part: a pod has no use for it":   {"--claim", "c", "sim", "--part", "1/2"},
	} {
		o := call(t.Context(), append(pods, args...)...)
		if !strings.Contains(o.stderr, want) || o.code != ExitUsage || o.stdout != "" || strings.Contains(o.stderr, "geheim") {
			t.Errorf("%q: exit %d: %s%s, want %s", args, o.code, o.stdout, o.stderr, want)
		}
	}
	for want, args := range map[string][]string{
		"say how many pods there are":     {"kubernetes", "run", "honest"},
		"there is no image of this build": {"kubernetes", "--generators", "3", "run", "honest"},
	} {
		if o := call(t.Context(), args...); !strings.Contains(o.stderr, want) || o.code != ExitUsage {
			t.Errorf("exit %d: %s, want %s", o.code, o.stderr, want)
		}
	}
	o := call(t.Context(), append(pods, "run", "sql-only", "--config", "plan.yaml")...)
	for _, want := range []string{`plan.yaml: "strategy:\n  - sql-only\nrequests: 70\n"`, "--from-literal=postgres=URL", "QUOTABENCH_POSTGRES",
		"secret generic quotabench-stores ", "\n  ttlSecondsAfterFinished: 86400\n", "\n            cpu: \"1\"\n            memory: \"1Gi\"\n",
		"kubectl delete -f FILE removes all of it."} {
		if o.code != ExitOK || !strings.Contains(o.stdout, want) {
			t.Errorf("exit %d, %s: want %s in\n%s", o.code, o.stderr, want, o.stdout)
		}
	}
	token := regexp.MustCompile(`token: "[a-z0-9]{20,}"`)
	if a, b := token.FindString(o.stdout), token.FindString(call(t.Context(), append(pods, "run", "sql-only")...).stdout); a == "" || a == b {
		t.Errorf("the tokens of two runs are %q and %q", a, b)
	}
	for of, url := range map[string]bool{"sim": false, "explore": true} { // a simulation has its own stores
		o := call(t.Context(), append(pods, "--claim", "c", of, "sql-only")...)
		if o.code != ExitOK || strings.Contains(o.stdout, "QUOTABENCH_POSTGRES") != url || strings.Contains(o.stdout, "token") {
			t.Errorf("%s: exit %d, %s, want the URL of a store: %t\n%s", of, o.code, o.stderr, url, o.stdout)
		}
	}
	p.requireUntouched()
}

// TestKubernetesKinds: a pod has the URL of each kind of store once, whatever the strategies are.
func TestKubernetesKinds(t *testing.T) {
	needs := func(all ...strategies.Need) strategies.Selection {
		return strategies.Selection{Meta: &strategies.Meta{Name: "x", Needs: all}}
	}
	got, err := kinds([]strategies.Selection{needs(strategies.NeedRedis), needs(strategies.NeedPostgres, strategies.NeedRedis), needs(strategies.NeedSource)})
	if err != nil || !slices.Equal(got, []string{"postgres", "redis"}) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := kinds([]strategies.Selection{needs("tape")}); err == nil || !strings.Contains(err.Error(), "strategy x: ") {
		t.Errorf("a store that there is not: %v", err)
	}
}
