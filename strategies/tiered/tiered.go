package tiered

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

const (
	// hashTTL is how long a hash of counts lives after a write, in policy time.
	hashTTL = time.Hour
	// resetEvery is how often the reset job looks for windows that have ended: the
	// resolution of a cron table. Most rounds find none and ask no store.
	resetEvery = time.Minute
	// What begins with job names a job.
	jobWriteBack = "write-back"
	jobRebuild   = "rebuild"
	jobReset     = "reset"
	jobReconcile = "reconcile"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:    "redis-hash",
		Options: options,
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openInstance(ctx, env, nil)
		},
	}))
	family.Register(files, meta(strategies.Meta{
		Name:    "three-tier",
		About:   strategies.About{Core: true},
		Options: append([]quota.Option{optionFilter, optionSync, optionRebuild}, options...),
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			return openInstance(ctx, env, newFilter(shape{env.Options["filter"] == "scalable", FilterMembers(env.Subjects)}))
		},
	}))
}

// meta completes what the strategies of the record have in common. None declares
// a bound: a check that missed can erase any number of charges.
func meta(m strategies.Meta) strategies.Meta {
	m.SharesMemory = true
	m.Needs = []strategies.Need{strategies.NeedRedis, strategies.NeedSource}
	m.NeedsToo = func(options quota.Options) []strategies.Need {
		if options["source"] == fromReplica {
			return []strategies.Need{strategies.NeedReplica}
		}
		return nil
	}
	// The record's queue takes seconds after each round until it is empty.
	m.BriskOptions = quota.Options{"lag": "0s", "batch": "256"}
	m.Serves = serves
	m.Reset = strategies.ResetsMissing
	m.Record = Promises()
	return family.GivingBack(m)
}

// Promises are ADR-005's: nothing beyond the limit, usage as enforced within 5 % of the
// true one, and less than 1 % of valid requests rejected.
func Promises() []quota.Clause {
	const record = "ADR-005"
	hundredth := func(n int64) func(quota.Params) int64 {
		return func(params quota.Params) int64 { return params.Limit * n / 100 }
	}
	return []quota.Clause{
		quota.Exactly().From(record, "no false negatives"),
		{
			Property: quota.PropertyLeak, Formula: "L + 5 %", Bound: hundredth(5), Source: record,
			Says: "enforced within 5 % of the usage",
		},
		{
			Property: quota.PropertyFalseReject, Formula: "1 % of L", Bound: hundredth(1), Source: record,
			Says: "fewer than 1 % false positives",
			// elsewhere more than L is valid
			Kinds: []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed},
		},
	}
}

// instance is one application instance of either strategy.
type instance struct {
	config
	clock  quota.Clock
	redis  redis.UniversalClient
	source source
	// reads answers misses: the source, or a replica of it.
	reads  reader
	wake   func(job string)
	prefix string
	// filter is nil for redis-hash.
	filter *filter
	// resets is nil with reset=none.
	resets *resetter

	queue queue
	// rebuilds is the period of the filter's rebuild.
	rebuilds time.Duration
	// filterDue asks for a rebuild ahead of its period.
	filterDue strategies.Flag
	// syncDead is set once an error has ended the filter's loop.
	syncDead strategies.Flag
	// seen says of which kinds of use there are counts to reconcile.
	seen [useCount]strategies.Flag
	// Running totals for Measures.
	filtered, falsePositives, passed, misses, chargeFailed, written, reconciled strategies.Tally
}

func openInstance(ctx context.Context, env strategies.Env, f *filter) (strategies.Strategy, error) {
	src, err := family.OpenSource(ctx, env, openPostgres, openModel)
	if err != nil {
		return nil, fmt.Errorf("open the database of record: %w", err)
	}
	in := &instance{
		config: configure(env.Options),
		clock:  env.Clock, redis: strategies.Redis(env), source: src, reads: src, wake: env.Wake, prefix: env.Prefix,
		filter: f,
	}
	if env.Options["source"] == fromReplica {
		in.reads, err = openReplica(ctx, env, src)
		if err != nil {
			return nil, fmt.Errorf("open the replica of the database of record: %w", err)
		}
	}
	if env.Options["reset"] == "job" {
		in.resets = newResetter(env, in)
	}
	if f != nil {
		in.rebuilds = env.Options.Duration(optionRebuild.Name)
	}
	in.filterDue.Store(f != nil)
	return in, nil
}

// Take implements strategies.Strategy: check, then charge.
func (in *instance) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	use, err := useOf(in.uses, req.Policy)
	if err != nil {
		return quota.Decision{}, err
	}
	in.watch(use, req.Policy)
	if in.screened(req.Subject) {
		return quota.Decision{Tier: quota.TierFilter}, nil
	}
	decision, err := in.check(ctx, use, req)
	if err != nil || !decision.Admitted {
		return decision, err
	}
	decision.Reservation = quota.Reservation{Request: req, Window: req.Policy.Window.At(in.clock.Now()).Index}
	if in.chargesLater(req) {
		return decision, nil
	}
	if charged, err := in.charge(ctx, use, req, req.Units); err != nil {
		if in.chargeFirst || family.GaveUp(ctx, in.clock) {
			return quota.Decision{}, err
		}
		// The check has answered and the work is done: what fails after that, an
		// outage or a limit that is missing, takes nothing back.
		if !charged {
			in.chargeFailed.Add(req.Units)
		}
		decision.Degraded = true
	}
	return decision, nil
}

// watch tells the jobs that there are of a policy: which kind of use it counts, and
// whether a window of it has ended.
func (in *instance) watch(u *use, policy *quota.Policy) {
	if in.reconciles > 0 {
		in.seen[u.index].Store(true)
	}
	if in.resets != nil && in.resets.see(u, policy, policy.Window.At(in.clock.Now()).Index) {
		in.wake(jobReset)
	}
}

// Used implements strategies.Viewer: what the hash holds, and what the table does
// in the column that exists.
func (in *instance) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	use, err := useOf(in.uses, policy)
	if err != nil {
		return nil, err
	}
	cached, known, err := in.number(ctx, in.counts(subject), use.field)
	if err != nil {
		return nil, err
	}
	readings := []quota.Reading{{Tier: quota.TierRedis, Units: cached, Known: known}}
	stored, err := in.source.used(ctx, use.real(), subject)
	if err != nil && !errors.Is(err, errNoAgent) {
		return nil, fmt.Errorf("read %s: %w", use.real().usedColumn, err)
	}
	return append(readings, quota.Reading{Tier: in.source.tier(), Units: stored, Known: err == nil}), nil
}

// Screens implements strategies.Screener.
func (in *instance) Screens(subject quota.Subject) bool {
	return in.filter != nil && in.filter.test(subject)
}

// Provision writes rows, as an operator would, and leaves the cache alone: a
// limit that is raised here reaches Redis when the count is next missing. An
// agent whose quota is used up enters the shared set as its own requests
// would have put it there: with write=back.
func (in *instance) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	use, err := useOf(in.uses, policy)
	if err != nil {
		return err
	}
	in.watch(use, policy)
	if err := in.source.provision(ctx, use.real(), grants); err != nil {
		return fmt.Errorf("provision %d agents: %w", len(grants), err)
	}
	if err := in.reads.follow(ctx); err != nil {
		return fmt.Errorf("provision %d agents: %w", len(grants), err)
	}
	if in.filter == nil || in.write != writeBackMode {
		return nil
	}
	var full []any
	for _, grant := range grants {
		if grant.Used >= grant.Limit {
			full = append(full, string(grant.Subject))
		}
	}
	if len(full) == 0 {
		return nil
	}
	if err := in.redis.SAdd(ctx, in.overQuota(), full...).Err(); err != nil {
		return fmt.Errorf("mark %d agents over quota: %w", len(full), err)
	}
	in.filterDue.Store(true)
	in.wake(jobRebuild)
	return nil
}

// SetLimit implements [strategies.LimitSetter]: rows get the limit, and the cache and
// the set of agents over quota keep what they had, as in the record.
func (in *instance) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	use, err := useOf(in.uses, policy)
	if err != nil {
		return err
	}
	return in.source.setLimit(ctx, use.real(), subjects, policy.Limit)
}

// Close implements strategies.Strategy. What is still queued is lost, as it is
// when a process of the record's service ends.
func (in *instance) Close(context.Context) error { return nil }
