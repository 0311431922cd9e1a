package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/results/codec"
)

// Advice on commands stands below what a search found, in all that it writes, and fails explore --strict alone.
func TestAdvice(t *testing.T) {
	testenv.Sequential(t)
	t.Chdir(t.TempDir())
	const heading = "advice on incr-expire: ttl-gap, "
	for _, c := range []struct {
		args    []string
		code    int
		advised bool
	}{
		{[]string{"incr-expire", "--property", "leak"}, exit.OK, true},
		{[]string{"incr-expire", "--property", "leak", "--strict"}, exit.Gate, true},
		{[]string{"incr-expire", "--full", "--strict"}, exit.Gate, true},
		{[]string{"incr-expire", "--property", "leak", "--policy", "user-links", "--clients", "2", "--out", "out"}, exit.OK, true},
		{[]string{"incr-expire-atomic", "--property", "leak", "--strict"}, exit.OK, false},
		{[]string{"unlimited", "--property", "leak", "--strict", "--exit-zero"}, exit.OK, false},
	} {
		var stdout, stderr bytes.Buffer
		code := cli.Main(append([]string{"explore"}, c.args...), &stdout, &stderr)
		if code != c.code || strings.Contains(stdout.String(), "advice") != c.advised ||
			strings.Count(stdout.String(), heading) > 1 {
			t.Errorf("%q: exit %d: %s%s", c.args, code, &stdout, &stderr)
		}
		if strict := strings.Contains(stderr.String(), "--strict allows none"); strict != (code == exit.Gate) {
			t.Errorf("%q: %s", c.args, &stderr)
		}
	}
	x, err := codec.ReadExploration(filepath.Join("out", "exploration.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Advice) != 1 || x.Advice[0].Code != codes.AdviseTTLGap || x.Advice[0].Count != 12 ||
		x.Advice[0].Names != "INCR" {
		t.Errorf("%+v", x.Advice)
	}
	for name, want := range map[string]string{"report.txt": heading + "12 times: ", "report.html": "Advice: ttl-gap"} {
		text, err := os.ReadFile(filepath.Join("out", name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q (%v)", name, want, err)
		}
	}
}
