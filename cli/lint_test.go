package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/exit"
	"github.com/quotabench/quotabench/internal/lint"
)

// Findings are shown with their command, and fail the command if it is strict.
func TestLint(t *testing.T) {
	clean := lint.Report{Strategy: "right", Decisions: 4, Commands: 6, RoundTrips: 4, MostCommands: 2, MostRoundTrips: 1, MostKeys: 3, Findings: []lint.Finding{}}
	found := clean
	found.Findings = []lint.Finding{{Code: "no-ttl", Policy: "a policy", Text: "it never expires", Command: "INCR key"}}
	skipped := lint.Report{Strategy: "other", Skipped: "it sends none", Findings: []lint.Finding{}}
	for _, c := range []struct {
		report       lint.Report
		strict, gate bool
		want         []string
	}{
		{clean, true, false, []string{"1.50", "1.00", "2 in 1"}},
		{found, false, false, []string{"right: no-ttl: it never expires [a policy]", "    INCR key"}},
		{found, true, true, nil},
		{skipped, true, false, []string{"other was left out: it sends none"}},
	} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		err := showLinted(cmd, []lint.Report{c.report}, false, c.strict)
		var coded *exit.Error
		if gate := errors.As(err, &coded) && coded.Code == ExitGate; gate != c.gate || !gate && err != nil {
			t.Errorf("%+v: %v", c.report, err)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("no %q: %s", w, out.String())
			}
		}
		out.Reset()
		_ = showLinted(cmd, []lint.Report{c.report}, true, c.strict)
		var all []lint.Report
		if err := json.Unmarshal(out.Bytes(), &all); err != nil || !reflect.DeepEqual(all, []lint.Report{c.report}) {
			t.Errorf("%v: %s", err, out.String())
		}
	}
	requireUsageError(t, call(t.Context(), "lint", "honest")) // it sends no commands to Redis
	requireUsageError(t, call(t.Context(), "lint", "nobody"))
	requireUsageError(t, call(t.Context(), "lint"))
	if o := call(t.Context(), "lint", "honest,liar"); o.code != ExitOK || strings.Count(o.stdout, "was left out") != 2 {
		t.Errorf("exit %d: %s%s", o.code, o.stdout, o.stderr)
	}
}
