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
		{"run honest --config run.yaml", `run.yaml:1: client: option "fast" of client is not of the form OPTION=VALUE`},
		{"sim honest --rate 5 --client pool=8", `--client: no option "pool": it has cold`},
		{"run honest --client pool=0", "--client: option pool: 0 is not from 1 to "},
		{"run honest --client pool=8,pool=4", `--client: option "pool" of client is given twice`},
		{"run honest --client pol=8", `--client: no option "pol" (did you mean pool?): it has pool, retries, cold`},
		{"run honest --param pool=1,2 --client pool=4", "pool is given by --client, too"},
		{"explore honest --client cold", "unknown flag --client"},
	} {
		o := call(t.Context(), strings.Fields(c.args)...)
		if o.code != exit.Usage || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q; want %d, %q", c.args, o.code, o.stderr, exit.Usage, c.want)
		}
	}
	p.requireUntouched()
}
