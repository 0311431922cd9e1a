package cli

import (
	"github.com/quotabench/quotabench/internal/kit/exit"
	"strings"
	"testing"
)

// TestClientErrors: what cannot be meant is refused in one line before anything starts.
func TestClientErrors(t *testing.T) {
	p := newPlace(t, map[string]string{"run.yaml": "client: [fast]\n"})
	for _, c := range []struct {
		args string
		want string
	}{
		{"run honest --client fast", `--client: unknown kind of client "fast": one of plain, autopipeline`},
		{"run honest --client plain,plain", "--client: plain is given twice"},
		{"run honest --config run.yaml", `run.yaml:1: client: unknown kind of client "fast"`},
		{"run honest@autopipeline", "quotabench: strategy honest asks no Redis: it has no client of the kind autopipeline"},
		{"run honest@fast", `quotabench: "honest@fast": unknown kind of client "fast"`},
		{"sim honest --rate 5 --client autopipeline", "--client: kinds of clients differ in a measurement alone: give plain"},
		{"sim honest --rate 5 --client plain:pool=8", `--client: no option "pool": it has cold`},
		{"run honest --client plain:pool=0", "--client: option pool: 0 is not from 1 to "},
		{"run honest --client plain:pol=8", `--client: no option "pol" (did you mean pool?): it has pool, retries, cold`},
		{"run honest --client plain:pool=8,autopipeline:pool=4",
			"--client: pool is given for two kinds, and all kinds have the same: give it once"},
		{"run honest --client pool=8", `--client: option "pool=8" follows no kind of client: write NAME:OPTION=VALUE`},
		{"run honest --param pool=1,2 --client plain:pool=4", "pool is given by --client, too"},
		{"explore honest --client autopipeline", "unknown flag --client"},
		{"run honest --param client=plain --client plain", "client is given by --client, too"},
	} {
		o := call(t.Context(), strings.Fields(c.args)...)
		if o.code != exit.Usage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, o.code, o.stderr, exit.Usage, c.want)
		}
	}
	p.requireUntouched()
}

// TestClientOfStrategiesWithoutRedis: they take part once, whatever kinds there are.
func TestClientOfStrategiesWithoutRedis(t *testing.T) {
	newPlace(t, nil)
	_, cfg := planned(t, "honest", "--client", "autopipeline,plain")
	if len(cfg.Strategies) != 1 || cfg.Strategies[0].String() != "honest" {
		t.Errorf("it is %v", cfg.Strategies)
	}
}
