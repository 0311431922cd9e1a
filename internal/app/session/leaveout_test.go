package session

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestLeaveOut: strategies whose kind of policy was not taken are left out, with the command that
// tries each, unless the policy was named.
func TestLeaveOut(t *testing.T) {
	serving := func(name string, kinds ...quota.Kind) strategies.Selection {
		return strategies.Selection{Meta: &strategies.Meta{Name: name, Kinds: kinds}}
	}
	hourly := serving("hourly", quota.CalendarHour, quota.Fixed)
	bucket := serving("bucket", quota.Bucket, quota.Rolling, quota.Fixed)
	log := serving("log", quota.Rolling)
	never := serving("never", quota.CalendarHour)
	never.Excluded = map[strategies.Mode]string{strategies.ModeMeasure: "it is a test"}
	cannot := func(s strategies.Selection, p *harness.Plan) error {
		return p.CannotRun(s, strategies.ModeMeasure, false)
	}
	for _, x := range []struct {
		flags, policy string
		all           []strategies.Selection
		left, refused string
	}{
		{policy: "agent-api", all: []strategies.Selection{hourly}},
		{policy: "50-requests-refilling-50-per-1h", all: []strategies.Selection{bucket}},
		{policy: "50-requests-per-fixed-1h", all: []strategies.Selection{hourly, bucket}},
		{policy: "50-requests-per-rolling-1h", all: []strategies.Selection{log, hourly, bucket},
			left: "hourly: policy 50-requests-per-rolling-1h has a rolling window; hourly serves calendar-hour, fixed; " +
				"this runs it: quotabench run hourly --policy agent-api"},
		{policy: "agent-api", all: []strategies.Selection{hourly, log},
			left: "log: policy agent-api has a calendar-hour window; log serves rolling; " +
				"this runs it: quotabench run log --policy '50 requests per rolling 1h'"},
		{policy: "agent-api", all: []strategies.Selection{hourly, never},
			refused: "strategy never: it cannot be measured: it is a test"},
		{flags: "--policy=login --instances=1", policy: "login", all: []strategies.Selection{log, hourly},
			refused: "strategy hourly: policy login has a rolling window; hourly serves calendar-hour, fixed; " +
				"this runs it: quotabench run hourly --policy '5 attempts per fixed 15m' --instances=1"},
	} {
		s := group.New(group.Run)
		cmd := &cobra.Command{}
		s.Register(cmd, s.Subject(), s.Stream(), s.Stores())
		if err := cmd.ParseFlags(strings.Fields(x.flags)); err != nil {
			t.Fatal(err)
		}
		s.Strategies = nil
		for _, sel := range x.all {
			s.Strategies = append(s.Strategies, sel.Name)
		}
		p, err := s.PlanFor(x.all)
		if err != nil || p.Policy.Name != x.policy || s.Policy != x.policy {
			t.Errorf("%v: policy %s, %v; want %s", x.all, p.Policy.Name, err, x.policy)
		}
		_, skipped := p.Split(func(sel strategies.Selection) error { return cannot(sel, &p) })
		refused := ""
		if err := LeaveOut(s, &p, skipped, cannot); err != nil {
			refused = err.Error()
		}
		left := ""
		for name, why := range skipped {
			left += name + ": " + why
		}
		if refused != x.refused || refused == "" && left != x.left {
			t.Errorf("%v: left out %q, refused %q; want %q, %q", x.all, left, refused, x.left, x.refused)
		}
	}
}
