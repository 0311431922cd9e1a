// Package prove tests a limiter in one call of a go test: by the conformance suite, by
// exploring schedules within a budget of time, and by simulating a month.
//
//	func TestLimiter(t *testing.T) { prove.Limiter(t, meta, prove.Options{}) }
//
// It needs no server: Redis runs in the test's process. What passes is logged as what may
// be claimed, and what fails with the schedule that breaks it and the command that repeats
// that.
package prove

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

// Stage is a part of a proof, by the name of its subtest.
type Stage string

// The stages.
const (
	// Conformance: the limiter does what its Meta says, one caller after the other and many
	// at once. See package strategytest.
	Conformance Stage = "conformance"
	// Exploration: no order of store commands of a few callers breaks a property. See
	// package explore.
	Exploration Stage = "exploration"
	// Simulation: a month of virtual time shows no leak and no false reject, and neither do rests of weeks, the odd
	// moments of calendars and clocks that are wrong. See package sim.
	Simulation Stage = "simulation"
)

// Options say how a limiter is proved. The zero value is useful.
type Options struct {
	// Policy to enforce. The zero value is ten requests in a minute, of the first kind
	// that the limiter serves, and several of each kind in the exploration, whose limits are small.
	// If the limiter serves none of these, it is the first registered one that it serves
	// ([quota.RegisterPolicy]). A stage that knows no policy that the limiter serves is skipped, and says so.
	Policy quota.Policy
	// Second is a further window that the limiter has besides that of Policy, e.g. of 1 request per second next to one of
	// 10 per minute: it admits a request if there is room in both, and charges a rejected one to none. The zero value is
	// none. With it, the suite has nothing against rejections, and unless requests name the window
	// ([strategies.Meta].TwoQuotas) neither has the simulation: the exploration judges them by both windows.
	Second quota.Policy
	// Budget of all searches of the exploration together, by the wall clock; default 20 s, less what the suite took if it
	// has failed, and at least 5 s. What is claimed then says whether it was enough. Negative has no bound of time.
	Budget time.Duration
	// Clients of its first search; default 2.
	Clients int
	// Instances of the application that share the store; default one for each client of a search and 2
	// in the simulation, and 1 for a limiter without a store.
	Instances int
	// Faults of one more search, e.g. [quota.FaultEviction], in addition to those of
	// [explore.Searches]. With faults, only what the limiter guarantees, keys that never
	// expire and callers that are stuck count. With [quota.FaultClock], a clock that steps back may also keep nobody out
	// who has units left.
	Faults []quota.Fault
	// Skew is how far the clock of each instance is ahead of that of the stores, in a simulation; missing ones are 0.
	// The limiter is then held to its clauses although clocks differ. By default the clock of the second instance is 2 s
	// ahead, or a tenth of a window if that is less, and only clauses that tolerate [quota.FaultClock] count, and that of
	// a limiter that declares none about leaks.
	Skew []time.Duration
	// Days of the simulated month, and at least four windows; default 30.
	Days int
	// Seed of all random numbers; default 1.
	Seed uint64
	// Skip leaves stages out.
	Skip []Stage

	// served is Policy or, if it is the zero value, one that the limiter serves; the zero value if none is known.
	served quota.Policy
	// limited is set if no search may take longer than the budget, not even one that a claim needs.
	limited bool
	// added is set if the last clause of the limiter is not its own.
	added bool
}

// budget is that of an exploration if none is given.
var budget = 20 * time.Second

// replayVariable holds a token whose schedule alone is run.
const replayVariable = "QUOTABENCH_REPLAY"

// Limiter proves a limiter in one subtest per stage. If its Meta declares no clause
// about leaks of a kind of windows, it is held to admitting no more than its limit.
//
// A stage that fails says why in its log. With QUOTABENCH_REPLAY set to a token of an
// exploration, the schedule of that is run and shown, and nothing else.
//
// A panic on a goroutine that the limiter has started ends the test binary, as it does in
// any test. The command line names it with its schedule: see [explore.Config].
func Limiter(t *testing.T, meta *strategies.Meta, options Options) {
	t.Helper()
	m, options, err := options.complete(meta)
	if err != nil {
		t.Fatal(err)
	}
	sel, err := m.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	if token := os.Getenv(replayVariable); token != "" {
		replay(t, sel, token)
		return
	}
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	proof := proof{options: &options, name: m.Name}
	proof.stage(t, Conformance, func(t *testing.T) { options.conforms(t, m) })
	proof.stage(t, Exploration, func(t *testing.T) {
		options.Budget = cmp.Or(options.Budget, budget)
		options.explored(t, sel, pattern)
	})
	proof.stage(t, Simulation, func(t *testing.T) {
		if why, cannot := sel.Excludes(strategies.ModeSimulate); cannot || explore.OnPostgres(sel) {
			t.Skip("not simulated: " + cmp.Or(why, "its statements run on a real PostgreSQL, whose time does not jump"))
		}
		options.simulated(t, sel)
	})
	proof.end(t)
}

// proof is one call of [Limiter].
type proof struct {
	options *Options
	name    string // of the limiter
	// skipped and ran are the stages that have been skipped and those that have run.
	skipped []string
	ran     []string
}

// stage runs one in a subtest, unless it is left out or has no policy.
func (p *proof) stage(t *testing.T, stage Stage, run func(t *testing.T)) {
	t.Helper()
	t.Run(string(stage), func(t *testing.T) {
		if slices.Contains(p.options.Skip, stage) {
			t.Skip("left out by the test's options")
		}
		defer func() {
			if t.Skipped() {
				p.skipped = append(p.skipped, string(stage))
			} else {
				p.ran = append(p.ran, string(stage))
			}
		}()
		if stage != Conformance && p.options.served.Limit == 0 {
			t.Skipf("not tried: %s serves no policy that is known: register one that it serves by quota.RegisterPolicy, or set "+
				"Options.Policy", p.name)
		}
		run(t)
	})
}

// end names the stages that were skipped.
func (p *proof) end(t *testing.T) {
	t.Helper()
	if len(p.skipped) == 0 {
		return
	}
	skipped := strings.Join(p.skipped, ", ")
	if len(p.ran) == 0 {
		t.Skipf("nothing is proved: no stage has run (%s)", skipped)
	}
	t.Logf("not all is proved: what has not run is %s", skipped)
}

// conforms runs the conformance suite. If it fails, the time it took is taken off the budget of the exploration.
func (o *Options) conforms(t *testing.T, meta *strategies.Meta) {
	t.Helper()
	began := clock.Nano()
	strategytest.Run(t, meta, o.stores()...)
	if !t.Failed() {
		t.Log("claimed: does what its Meta declares, one caller after the other and many at once")
		return
	}
	took := time.Duration(clock.Nano() - began)
	if o.Budget == 0 {
		o.Budget = max(budget-took, budget/4) // it has waited for a request that does not return, perhaps
	}
}

// stores are the embedded ones, and the policy that they are given.
func (o *Options) stores() []strategytest.Stores {
	if o.served.Limit == 0 {
		return nil
	}
	return []strategytest.Stores{{Policy: o.served, Second: o.Second}}
}

// complete fills in what is not said.
func (o Options) complete(meta *strategies.Meta) (*strategies.Meta, Options, error) {
	m := *meta
	var promised []quota.Kind
	for _, k := range m.Kinds {
		if !slices.ContainsFunc(m.Guarantee, func(clause quota.Clause) bool {
			return clause.Property == quota.PropertyLeak && clause.Applies(k)
		}) {
			promised = append(promised, k)
		}
	}
	if len(promised) > 0 {
		exactly := quota.Exactly()
		exactly.Kinds = promised
		m.Guarantee = append(slices.Clone(m.Guarantee), exactly)
		o.added = true
	}
	o.limited = o.Budget != 0 // whatever the suite takes off the budget
	o.Clients = cmp.Or(o.Clients, 2)
	o.Days = cmp.Or(o.Days, 30)
	o.Seed = cmp.Or(o.Seed, 1)
	m.Form = strategies.Library // searched as code that somebody else wrote
	o.served = o.Policy
	if o.Second.Limit != 0 && o.Policy.Limit == 0 {
		return &m, o, errors.New("Options.Second is a further window: set that of Options.Policy, too")
	}
	if o.Policy.Limit != 0 {
		return &m, o, m.ServesPolicy(&o.Policy)
	}
	if policy, err := explore.ExamplePolicy(&m); err == nil {
		o.served = policy
		return &m, o, nil
	}
	for _, policy := range quota.Policies() {
		if m.ServesPolicy(&policy) == nil {
			o.Policy = policy
			o.served = policy
			break
		}
	}
	return &m, o, nil
}

// replay shows the schedule of a token.
func replay(t *testing.T, sel strategies.Selection, token string) {
	t.Helper()
	r, err := explore.ReplayOf(context.WithoutCancel(t.Context()), sel, token, explore.Target{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := timeline(r.Finding)
	switch {
	case err != nil:
		t.Fatal(err)
	case r.Broken:
		t.Errorf("%s again: %s\n%s", r.Property, r.Finding.Detail, text)
	default:
		t.Logf("%s is not broken by the schedule any more\n%s", r.Property, text)
	}
}
