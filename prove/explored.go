package prove

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/text"
	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/strategies"
)

// part is one search of the exploration.
type part struct {
	faults     []quota.Fault
	properties []explore.Property
	share      time.Duration // of the budget
}

// parts are the searches of an exploration: with nothing but time that passes, and with
// the faults that were asked for.
func (o *Options) parts(m *strategies.Meta) []part {
	all := slices.DeleteFunc(explore.Properties(), func(p explore.Property) bool {
		declared := slices.ContainsFunc(m.Guarantee, func(c quota.Clause) bool { return c.Property == quota.PropertyFalseReject })
		return p == explore.Leak || p == explore.FalseReject && declared // clauses say what of it is promised
	})
	out := []part{{[]quota.Fault{quota.FaultClock}, all, max(o.Budget, 0)}}
	if len(o.Faults) > 0 {
		out = append(out, part{o.Faults, []explore.Property{explore.Guarantee, explore.TTL, explore.Stuck}, max(o.Budget, 0) / 2})
		out[0].share -= out[1].share
	}
	return out
}

// explored is one search. test is the pattern of the test that makes it.
func (o *Options) explored(ctx context.Context, sel strategies.Selection, p part, test string) (claim, wrong string, err error) {
	r, err := explore.Run(ctx, sel, explore.Config{
		Policy: o.Policy, Clients: o.Clients, Instances: min(o.Instances, o.Clients), Seed: o.Seed,
		Faults: p.faults, Properties: p.properties, Timeout: p.share,
	})
	if r == nil {
		return "", "", err
	}
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		steps, err := timeline(f)
		if err != nil {
			return "", "", err
		}
		fmt.Fprintf(&b, "%s in %d steps: %s\n%s", strings.ToUpper(string(f.Property)), len(f.Steps), f.Detail, steps)
		if f.Token != "" {
			fmt.Fprintf(&b, "run it again:\n  %s=%s go test -run '%s'\n\n", replayVariable, f.Token, test)
		}
	}
	return r.Claim, b.String(), err
}

// timeline is a schedule as a table.
func timeline(f *results.Finding) (string, error) {
	if len(f.Steps) == 0 {
		return "", nil
	}
	var b strings.Builder
	err := text.Timeline(&b, layout.Page{Width: 100}, f)
	return b.String(), err
}
