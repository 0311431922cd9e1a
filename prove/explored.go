package prove

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/advice"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
)

// searches are those of an exploration: [explore.Searches], and one with the faults that
// were asked for. A limiter that is SQL is searched on a PostgreSQL of the test's own, if there is one.
func (o *Options) searches(t *testing.T, sel strategies.Selection) []explore.Config {
	t.Helper()
	// Clauses say what of a leak is promised.
	all := slices.DeleteFunc(explore.Properties(), func(p explore.Property) bool { return p == explore.Leak })
	cfg := explore.Config{Policy: o.Policy, Clients: o.Clients, Seed: o.Seed, Properties: all}
	if o.Instances > 0 {
		cfg.Instances = min(o.Instances, o.Clients)
	}
	if explore.OnPostgres(sel) {
		cfg.Postgres = storetest.Postgres(t)
	}
	out := explore.Searches(sel, cfg)
	if len(o.Faults) > 0 {
		cfg.Instances = out[0].Instances
		cfg.Faults = o.Faults
		cfg.Properties = []explore.Property{explore.Guarantee, explore.TTL, explore.Stuck}
		out = append(out, cfg)
	}
	return out
}

// explored makes the searches one after the other, each with its share of what is left of
// the budget. test is the pattern of the test that makes them.
func (o *Options) explored(t *testing.T, sel strategies.Selection, test string) {
	t.Helper()
	searches := o.searches(t, sel)
	ends := clock.Nano() + int64(max(o.Budget, 0))
	small := o.served
	small.Limit = max(int64(o.Clients)-1, 1)
	if _, err := searches[0].Complete(sel); err != nil && sel.ServesPolicy(&small) != nil {
		t.Skipf("not searched: %v", err)
	}
	found := map[string]bool{}
	tried := map[quota.Fault]bool{}
	var made results.Exploration
	for i, cfg := range searches {
		if o.Budget > 0 {
			cfg.Timeout = max(time.Duration(ends-clock.Nano())/time.Duration(len(searches)-i), 1)
		}
		for _, f := range cfg.Faults {
			tried[f] = true
		}
		r, err := explore.Run(t.Context(), sel, cfg)
		switch {
		case errors.Is(err, explore.ErrNotDeterministic):
			t.Fatalf("%v; if it must, name Exploration in Options.Skip", err) // what further searches find would not repeat, either
		case err != nil:
			t.Error(err)
		}
		if r == nil {
			if errors.As(err, new(*explore.UnfitError)) {
				return // the others do not fit either
			}
			continue
		}
		made.Searches = append(made.Searches, r)
		wrong, err := wrongIn(r, found, test)
		if err != nil {
			t.Error(err)
		}
		if wrong != "" {
			t.Error("\n" + wrong)
		}
		if slices.ContainsFunc(r.Withheld, func(w results.Withheld) bool { return w.Code == string(witness.OtherClient) }) {
			return // nor would the others see it
		}
		if r.Claim != "" && testing.Verbose() {
			t.Log("claimed: " + r.Claim)
		}
	}
	if !t.Failed() {
		advise(t, sel, o.Policy)
	}
	for range made.Untried() {
		t.Error("nothing was tried, the time was up before the first schedule: give a longer Options.Budget")
	}
	var left []string
	for _, f := range explore.Faults() {
		if !tried[f] {
			left = append(left, string(f))
		}
	}
	switch {
	case explore.OnPostgres(sel):
		t.Log("not tried: faults, which are not injected into a PostgreSQL, and time that passes")
	case len(left) > 0:
		t.Logf("not tried: %s: name them in Options.Faults", strings.Join(left, ", "))
	}
}

// advise logs what fails in production of commands that break no property.
func advise(t *testing.T, sel strategies.Selection, policy quota.Policy) {
	t.Helper()
	found, err := advice.Run(t.Context(), sel, policy)
	if err != nil {
		t.Logf("no advice on its commands: %v", err)
	}
	for i := range found {
		t.Logf("advice: %s: %s", text.AdviceText(&found[i]), found[i].Command)
	}
}

// wrongIn has the schedules that a search found. What was found already with the same faults is left out.
func wrongIn(r *explore.Result, found map[string]bool, test string) (string, error) {
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		key := fmt.Sprint(f.Property, f.Faults)
		if found[key] {
			continue
		}
		found[key] = true
		steps, err := timeline(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s in %s, policy %s with a limit of %d: %s\n%s", strings.ToUpper(string(f.Property)),
			format.Plural(int64(len(f.Steps)), "step", "steps"), r.Policy, r.Limit, f.Detail, steps)
		if f.Token != "" {
			fmt.Fprintf(&b, "run it again:\n  %s=%s go test -run '%s'\n\n", replayVariable, f.Token, test)
		}
	}
	return b.String(), nil
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
