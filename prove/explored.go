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
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// searches are those of an exploration: [explore.Searches], and one with the faults that
// were asked for. A limiter that is SQL is searched on a PostgreSQL of the test's own, if there is one.
func (o *Options) searches(t *testing.T, sel strategies.Selection) []explore.Config {
	t.Helper()
	// Clauses say what of a leak is promised.
	all := slices.DeleteFunc(explore.Properties(), func(property explore.Property) bool {
		return property == explore.Leak
	})
	cfg := explore.Config{Policy: o.Policy, Second: o.Second, Clients: o.Clients, Seed: o.Seed, Properties: all}
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
	exploration := exploration{sel: sel, test: test, found: map[string]bool{}}
	for i, cfg := range searches {
		config, err := cfg.Complete(sel)
		needed := err == nil && config.IsLeast() // on a slow machine it takes longer
		if o.Budget > 0 && (o.limited || !needed) {
			cfg.Timeout = max(time.Duration(ends-clock.Nano())/time.Duration(len(searches)-i), o.shortest())
		}
		if !exploration.search(t, cfg) {
			return
		}
	}
	if !t.Failed() {
		advise(t, sel, o.Policy)
	}
	for _, search := range exploration.made.Searches {
		if search.Capped != "" && len(search.Findings) == 0 && (search.Least() || !search.Tried()) {
			callers := format.Number(search.Clients, "caller")
			t.Errorf("not every order of %s was tried (%s): give a longer Options.Budget, or search this policy by "+
				"quotabench explore --max-states", callers, search.Capped)
		}
	}
	logUntried(t, sel, searches)
}

// shortest is how long a search may take that a claim does not need, if the others have used up the budget: one that
// tried nothing says nothing.
func (o *Options) shortest() time.Duration {
	if o.limited {
		return 1
	}
	return time.Second
}

// exploration is the searches of one test.
type exploration struct {
	sel  strategies.Selection
	test string // its pattern
	// found are the properties and faults of the findings so far.
	found map[string]bool
	made  results.Exploration
}

// search makes one, and reports whether the next one is worth while.
func (x *exploration) search(t *testing.T, cfg explore.Config) bool {
	t.Helper()
	search, err := explore.Run(t.Context(), x.sel, cfg)
	switch {
	case errors.Is(err, explore.ErrNotDeterministic):
		// what further searches find would not repeat, either
		t.Fatalf("%v; if it must, name Exploration in Options.Skip", err)
	case err != nil:
		t.Error(err)
	}
	if search == nil {
		unfit := errors.As(err, new(*explore.UnfitError))
		return !unfit // the others do not fit either
	}
	x.made.Searches = append(x.made.Searches, search)
	wrong, err := wrongIn(search, x.found, x.test)
	if err != nil {
		t.Error(err)
	}
	if wrong != "" {
		t.Error("\n" + wrong)
	}
	unseen := slices.ContainsFunc(search.Withheld, func(withheld results.Withheld) bool {
		return withheld.Code == string(witness.OtherClient)
	})
	if unseen {
		return false // nor would the others see it
	}
	if search.Claim != "" && testing.Verbose() {
		t.Log("claimed: " + search.Claim)
	}
	return true
}

// logUntried logs what none of the searches has tried.
func logUntried(t *testing.T, sel strategies.Selection, searches []explore.Config) {
	t.Helper()
	var tried []quota.Fault
	for _, cfg := range searches {
		tried = append(tried, cfg.Faults...)
	}
	var left []string
	for _, fault := range explore.Faults() {
		if !slices.Contains(tried, fault) {
			left = append(left, string(fault))
		}
	}
	if sel.Reset == strategies.ResetsNever {
		t.Log("not tried: time that passes under policies with windows, since its Meta says that nothing resets it")
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
func wrongIn(search *explore.Result, found map[string]bool, test string) (string, error) {
	var builder strings.Builder
	for i := range search.Findings {
		finding := &search.Findings[i]
		key := fmt.Sprint(finding.Property, finding.Faults)
		if found[key] {
			continue
		}
		found[key] = true
		steps, err := timeline(finding)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&builder, "%s in %s, policy %s with a limit of %d: %s\n%s", strings.ToUpper(string(finding.Property)),
			format.Plural(int64(len(finding.Steps)), "step", "steps"), search.Policy, search.Limit, finding.Detail, steps)
		if finding.Token != "" {
			fmt.Fprintf(&builder, "run it again:\n  %s=%s go test -run '%s'\n\n", replayVariable, finding.Token, test)
		}
	}
	return builder.String(), nil
}

// timeline is a schedule as a table.
func timeline(finding *results.Finding) (string, error) {
	if len(finding.Steps) == 0 {
		return "", nil
	}
	var builder strings.Builder
	err := text.Timeline(&builder, layout.Page{Width: 100}, finding)
	return builder.String(), err
}
