package harness

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Plan says what a run consists of, whatever drives it. The zero values of
// optional fields are filled in by the runner's Complete.
type Plan struct {
	Strategies []strategies.Selection
	Policy     quota.Policy
	Quotas
	Seed uint64
	Traffic
	// Workers call the strategy at the same time; in open loop they are the most
	// requests in service at once.
	Workers int
	// Instances of the application that share the stores; in a simulation with
	// regions, in each region. Default 1.
	Instances int
	Callers
	Surroundings
	Keeping
	// Point holds the values of the parameters that a sweep varies, by name; nil outside
	// of a sweep. It tells runs apart and changes nothing about them.
	Point map[string]string
}

// Quotas are those besides the one of the policy.
type Quotas struct {
	// Policies are those of strategies that are tried under another policy, by label. Each
	// has the limit and the costs of Policy: all strategies get the same requests.
	Policies map[string]quota.Policy
	// Second is another quota that each request is charged to as well, that of one of so
	// many Routes; nil for none. Which one follows from the seed and the request's position.
	Second *quota.Policy
	Routes int
	routes []quota.Subject
}

// Traffic is the requests of a run, and how they are issued.
type Traffic struct {
	Workload *workloads.Meta
	// Stream holds the workload's own parameters. Seed, Policy and Requests are set
	// from the fields here.
	Stream workloads.Params
	// Load is how requests are issued.
	Load Load
	// Arrivals of an open loop: "poisson" (default) or "constant". A trace with a
	// speed arrives as recorded.
	Arrivals string
	// Requests bounds the requests of one run; 0 for no bound.
	Requests int64
	// Duration bounds the time in which requests are issued; 0 for no bound.
	Duration time.Duration
}

// Callers say how the application calls a strategy.
type Callers struct {
	// Life is how long a request that settles can be completed after its admission,
	// e.g. the life of a pre-signed URL. From then on no caller holds the units of one
	// that was abandoned. Default 15 minutes.
	Life time.Duration
	// Cold has every command, pipeline or transaction open a connection of its own and
	// close it again, as an application does that is started for each call.
	Cold bool
	// DecisionTimeout is how long one decision may take, by the wall clock, before its
	// context is cancelled. One that does not return within half of it after that is given up,
	// and the strategy's run ends. In virtual time it is how long a strategy may do nothing
	// that the simulation sees. Default 10 seconds.
	DecisionTimeout time.Duration
}

// Surroundings are what a run meets outside of the strategies.
type Surroundings struct {
	// Stores are the open stores of the run, by name. A strategy that needs a
	// database of record uses its model if there is no "postgres".
	Stores *stores.Set
	// Peers drive the load together with this process; nil for none.
	Peers Peers
	// Trouble is all that goes wrong on purpose, or changes in mid-run. Policy has the limit at the start, and which
	// callers are killed follows from the seed and the request's position.
	Trouble trouble.List
}

// ParseTrouble reads what goes wrong in a run, e.g. "redis:away@0.3-0.6", for [Surroundings].
func ParseTrouble(texts ...string) (trouble.List, error) { return trouble.ParseAll(texts) }

// Keeping is how much of the history of a run is kept, and where.
type Keeping struct {
	// HistoryLimit is the most events of one run. A run that comes close to it ends
	// early and says so. Default 2^27.
	HistoryLimit int64
	// HistoryDir is where a long history is kept while the run lasts; "" is the
	// system's folder for temporary files.
	HistoryDir string
	// Archive is an existing directory that keeps each run's history, as a file that
	// [JudgeFile] judges again; "" keeps none.
	Archive string
}

// NewPlan is the plan that names give: a list as [strategies.Parse] reads it, a policy
// and a workload. An unknown name is an error that lists the known ones.
func NewPlan(list, policy, workload string) (plan Plan, err error) {
	plan.Strategies, err = strategies.Parse(list)
	if err != nil {
		return plan, err
	}
	plan.Policy, err = quota.LookupPolicy(policy)
	if err != nil {
		return plan, err
	}
	plan.Workload, err = workloads.Lookup(workload)
	return plan, err
}

// NewHistory makes the history of a run with that many workers, which keeps so many events in memory; 0 is
// the default. It must be closed.
func (p *Plan) NewHistory(workers int, memory int64) *oracle.History {
	return oracle.NewHistory(oracle.HistoryOptions{Workers: workers, Limit: p.HistoryLimit,
		Dir:    cmp.Or(p.HistoryDir, os.TempDir()),
		Memory: memory})
}

// Complete fills in the defaults that all runners share and reports the first
// thing that does not fit.
func (p *Plan) Complete(maxWorkers int) error {
	p.Instances = cmp.Or(p.Instances, 1)
	p.HistoryLimit = cmp.Or(p.HistoryLimit, defaultHistoryLimit)
	p.Life = cmp.Or(p.Life, bounds.DefaultLife)
	p.DecisionTimeout = cmp.Or(p.DecisionTimeout, bounds.DecisionTimeout)
	if err := bounds.CheckDecisionTimeout(p.DecisionTimeout); err != nil {
		return err
	}
	switch {
	case len(p.Strategies) == 0:
		return errors.New("no strategy to run")
	case p.Workload == nil:
		return errors.New("no workload to run")
	case p.Policy.Limit < 1:
		return fmt.Errorf("a limit of %d: give 1 or more", p.Policy.Limit)
	case p.Workers < 1 || p.Workers > maxWorkers:
		return fmt.Errorf("%d workers: give 1 to %d", p.Workers, maxWorkers)
	case p.Instances < 1 || p.Instances > bounds.MaxInstances:
		return fmt.Errorf("%d instances: give 1 to %d", p.Instances, bounds.MaxInstances)
	case p.Requests < 0 || p.Duration < 0 || p.Load.PerSecond < 0 || p.HistoryLimit < 0 || p.Life < 0:
		return errors.New("requests, duration, rate, life and the length of a history cannot be negative")
	case p.Arrivals != "" && p.Arrivals != poisson && p.Arrivals != constant:
		return fmt.Errorf("arrivals %q: one of poisson, constant", p.Arrivals)
	}
	return cmp.Or(p.CheckPolicy(), p.completeSecond(), p.checkSizes())
}

// For is the plan for one of its strategies, under the policy that this one has.
func (p *Plan) For(selection strategies.Selection) Plan {
	own := *p
	if policy, ok := p.Policies[selection.String()]; ok {
		own.Policy = policy
		own.Policies = nil
	}
	return own
}

// CheckPolicy returns why the policy does not go with the workload, or with what is to happen
// in mid-run, or nil.
func (p *Plan) CheckPolicy() error {
	for _, label := range slices.Sorted(maps.Keys(p.Policies)) {
		own := *p
		own.Policy = p.Policies[label]
		own.Policies = nil
		if own.Policy.Limit != p.Policy.Limit || !slices.Equal(own.Policy.Costs, p.Policy.Costs) {
			return fmt.Errorf("policy %s of %s has another limit or other costs than %s", own.Policy.Name, label, p.Policy.Name)
		}
		if err := own.CheckPolicy(); err != nil {
			return err
		}
	}
	if len(p.Trouble.Of(trouble.Change)) > 0 && p.Policy.Window.Kind == quota.Bucket {
		return errors.New("the size of a bucket cannot change in mid-run: give a policy of another kind")
	}
	return p.Workload.ServesPolicy(&p.Policy)
}

// CannotRun returns why a strategy cannot take part in the given mode, or nil.
// Runners add what only they know, such as stores that are not there.
func (p *Plan) CannotRun(selection strategies.Selection, mode strategies.Mode, crossesWindows bool) error {
	if why, ok := selection.Excludes(mode); ok {
		return fmt.Errorf("it cannot be %s: %s", modeParticiple[mode], why)
	}
	if err := selection.BuiltIn(); err != nil {
		return err
	}
	if err := p.cannotKill(selection, mode); err != nil {
		return err
	}
	own := p.For(selection).Policy
	if err := selection.ServesPolicy(&own); err != nil {
		return err
	}
	if p.Second != nil {
		if !selection.TwoQuotas {
			return fmt.Errorf("it has one window, and the policy has two: give %s", twoQuotas())
		}
		if err := selection.ServesPolicy(p.Second); err != nil {
			return err
		}
	}
	if hold, err := time.ParseDuration(p.Stream.Options["hold"]); p.Workload.GivesBack && !selection.GivesBack &&
		(err != nil || hold != 0) {
		return fmt.Errorf("it cannot take units back, which the workload %s asks for: give --workload %[1]s:hold=0s",
			p.Workload.Name)
	}
	if selection.Reset == strategies.ResetsNever && crossesWindows {
		return fmt.Errorf("it has no reset, and this run crosses %s windows", own.Window.Kind)
	}
	return nil
}

var modeParticiple = map[strategies.Mode]string{
	strategies.ModeMeasure: "measured", strategies.ModeSimulate: "simulated", strategies.ModeExplore: "explored",
}

// twoQuotas names the strategies that serve a policy of two windows.
func twoQuotas() string {
	var names []string
	for _, meta := range strategies.All() {
		if meta.TwoQuotas && meta.BuiltIn() == nil {
			names = append(names, meta.Name)
		}
	}
	return format.Or(names)
}

// CrossesWindows reports whether the workload passes through several windows by
// design.
func (p *Plan) CrossesWindows() bool {
	return p.Policy.Window.Kind.Tumbling() && (p.Stream.Speed() > 0 || p.Workload.Boundary)
}

// Split separates the strategies that can take part from those that cannot, with
// the reason by label.
func (p *Plan) Split(cannot func(strategies.Selection) error) (run []strategies.Selection, skipped map[string]string) {
	skipped = map[string]string{}
	for _, selection := range p.Strategies {
		if err := cannot(selection); err != nil {
			skipped[selection.String()] = err.Error()
			continue
		}
		run = append(run, selection)
	}
	return run, skipped
}

// Blank is a run with everything that is known before it starts.
func (p *Plan) Blank(sel strategies.Selection, repetition int, stream workloads.Stream,
	info workloads.Info) results.Run {
	if len(p.Policies) > 0 {
		own := p.For(sel)
		p = &own
	}
	params := results.Params{
		Label: sel.String(),
		Quota: results.Quota{Limit: p.Policy.Limit, Unit: p.Policy.Unit, Window: windowText(p.Policy.Window)},
		Load: results.Load{
			Loop: codes.ClosedLoop, Workers: p.Workers, Instances: p.Instances, Subjects: workloads.Subjects(stream),
		},
		Length:   results.Length{Requests: p.Requests, DurationNS: int64(p.Duration), Speed: p.Stream.Speed()},
		Workload: map[string]string(p.Stream.Options),
		Stream:   workloads.Fingerprint(stream, min(cmp.Or(stream.Len(), fingerprinted), fingerprinted)),
	}
	if own, err := quota.LookupPolicy(p.Policy.Name); err == nil && own.Limit != p.Policy.Limit {
		params.PolicyLimit = own.Limit
	}
	params.Cold = p.Cold
	params.Point = p.Point
	if p.DecisionTimeout != bounds.DecisionTimeout {
		params.DecisionTimeoutNS = int64(p.DecisionTimeout)
	}
	params.Second = p.secondText()
	params.Trouble = p.Trouble
	if p.Open(info) {
		params.Loop = codes.OpenLoop
		params.Arrivals = p.arrivals()
		params.RatePerS = p.RateInForce()
		params.RateFrom = p.Load.From
	}
	notExplored, _ := sel.Excludes(strategies.ModeExplore)
	return results.Run{
		Identity: results.Identity{
			Strategy: sel.Name, Form: string(sel.Form), PerProcess: sel.PerProcess, Outside: sel.Outside,
			Avoid: sel.Notes.Avoid, NotExplored: notExplored,
		},
		Options: sel.Options, Policy: p.Policy.Name, Workload: p.Workload.Name, Params: params, Repetition: repetition,
		Promises: results.Promises{Guarantee: []results.Clause{}},
		Audit:    results.Audit{Valid: true, Reasons: []results.Reason{}},
	}
}

// secondText is what a record says of the second quota; empty if there is none.
func (p *Plan) secondText() string {
	switch {
	case p.Second == nil:
		return ""
	case p.Routes > 0:
		return format.Number(p.Routes, "route") + ": " + p.Second.String()
	}
	return p.Second.String()
}

// windowText describes a policy's window in a result, e.g. "fixed 1m0s" or "bucket
// refilling 10 per 1s".
func windowText(window quota.Window) string {
	if window.Kind == quota.Bucket {
		return fmt.Sprintf("%s refilling %d per %s", window.Kind, window.Refill, window.Length)
	}
	if window.Length > 0 {
		return window.Kind.String() + " " + window.Length.String()
	}
	return window.Kind.String()
}

// fingerprinted is how much of a stream its fingerprint covers at most.
const fingerprinted = 4096
