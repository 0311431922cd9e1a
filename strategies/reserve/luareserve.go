package reserve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	reserveScript = family.Script(files, "reserve.lua")
	refundScript  = family.Script(files, "refund.lua")
)

// ofDesignRecord is what ADR-RM-3 says: the script decides atomically, and a caller that dies
// leaves too much reserved and never too little.
var ofDesignRecord = []quota.Clause{
	quota.Exactly(quota.FaultCrash).From("ADR-RM-3", "reserved atomically, and always on the safe side"),
}

var luaReserveMeta = family.GivingBack(strategies.Meta{
	Name:  "lua-reserve",
	About: strategies.About{Core: true, Record: ofDesignRecord},
	Needs: []strategies.Need{strategies.NeedRedis, strategies.NeedSource},
	Reset: strategies.ResetsNever,
	Options: append([]quota.Option{
		{Name: "refund", Default: refundAny, Values: []string{refundAny, refundLiteral}},
		urlOption,
		{Name: "call", Default: callEval, Values: []string{callEval, callDigest}},
	}, syncOptions...),
	Guarantee: []quota.Clause{
		// The sync job counts stored files only. It forgets every reservation whose
		// upload is still under way, and what it forgets can be reserved again, in
		// every round: once it has run, nothing is promised. Neither a repeated
		// refund nor a lost key is noticed.
		family.ExactlyUnless("L", func(params quota.Params) bool {
			return params.SyncPeriod != 0 || params.Options["demand"] == demandRejected
		}, quota.FaultCrash, quota.FaultOutage, quota.FaultLimit).Under("while no sync round has run"),
	},
	Open: openLuaReserve,
})

// The values of the options refund and call.
const (
	refundAny     = "any"
	refundLiteral = "literal"
	callEval      = "eval"
	callDigest    = "evalsha"
)

// luaReserve is ADR-RM-3's decision. A tenant without a limit key has a limit
// of 0, and a Redis that does not answer is an error: the record describes
// neither failing open nor failing closed. Nothing but an operator sets a limit
// key: the sync restores a lost count, and not a lost limit.
//
// What is refunded differs between the record's prose and its listing. The prose
// (refund=any) gives units back when an upload fails and when a file is deleted.
// The listing (refund=literal) reserves, makes the URL that the client uploads to,
// and refunds if that step throws; nothing in it hears of the upload itself, or of
// a deletion, so Redis gets those units back from the sync job alone.
type luaReserve struct {
	redis redis.UniversalClient
	keys  keys
	files source
	urls  urls
	// refunds is false for refund=literal.
	refunds bool
	call    call
	syncs   syncs
}

func openLuaReserve(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	files, err := family.OpenSource(ctx, env, openPostgres, openModel)
	if err != nil {
		return nil, err
	}
	reserve := &luaReserve{
		redis: strategies.Redis(env), keys: newKeys(env), files: files, urls: newURLs(env),
		refunds: env.Options["refund"] != refundLiteral, syncs: newSyncs(env),
		call: (*redis.Script).Eval,
	}
	if env.Options["call"] == callDigest {
		reserve.call = (*redis.Script).Run
		if err := family.Load(ctx, reserve.redis, reserveScript, refundScript); err != nil {
			return nil, err
		}
	}
	return reserve, nil
}

// call sends a script.
type call func(script *redis.Script, ctx context.Context, scripter redis.Scripter, keys []string,
	args ...any) *redis.Cmd

// Take implements [strategies.Strategy].
func (s *luaReserve) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy.Name
	names := []string{s.keys.used(policy, req.Subject), s.keys.limit(policy, req.Subject)}
	res, err := family.Numbers(s.call(reserveScript, ctx, s.redis, names, req.Units), 3)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("reserving for %s: %w", req.Subject, err)
	}
	reserved := res[0] == 1
	used := res[1]
	limit := res[2]
	decision := quota.Decision{Admitted: reserved, Tier: quota.TierRedis, Remaining: max(0, limit-used)}
	if !reserved {
		s.syncs.want()
		return decision, nil
	}
	if err := s.urls.make(req); err != nil {
		if failed := s.refund(ctx, req, req.Units); failed != nil {
			return quota.Decision{}, fmt.Errorf("%w, and %w", err, failed)
		}
		return quota.Decision{}, err
	}
	decision.Reservation = quota.Reservation{Request: req}
	return decision, nil
}

// refund gives units back to the request's tenant.
func (s *luaReserve) refund(ctx context.Context, req quota.Request, units int64) error {
	key := s.keys.used(req.Policy.Name, req.Subject)
	err := s.call(refundScript, ctx, s.redis, []string{key}, units).Err()
	return family.Wrapf(err, "refunding %s", req.Subject)
}

// Commit implements [strategies.Committer]: the upload is done, and its file
// available. What was reserved stays reserved, also if the file turned out
// smaller or larger; only the sync job looks at actual sizes.
func (s *luaReserve) Commit(ctx context.Context, reservation quota.Reservation, actual int64) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	return s.files.add(ctx, fileOf(reservation), actual)
}

// Refund implements [strategies.Refunder]: after a failed upload it gives back
// what was reserved, after a file's deletion what the file took. It keeps no
// record of having done so. With refund=literal a deleted file leaves the table
// and Redis hears nothing.
func (s *luaReserve) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	units := reservation.Request.Units
	size, stored, err := s.files.remove(ctx, fileOf(reservation))
	if err != nil {
		return err
	}
	if !s.refunds {
		return nil
	}
	if stored {
		units = size
	}
	return s.refund(ctx, reservation.Request, units)
}

// Used implements [strategies.Viewer].
func (s *luaReserve) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.keys.used(policy.Name, subject), subject)
}

// Provision implements [strategies.Provisioner]. Units used at the start are a
// file that is already stored, so that the sync job finds them too.
func (s *luaReserve) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := s.files.provision(ctx, policy.Name, grants); err != nil {
		return err
	}
	return family.Provision(ctx, s.redis, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		pipe.Set(ctx, s.keys.limit(policy.Name, grant.Subject), grant.Limit, 0)
		if grant.Used == 0 {
			pipe.Del(ctx, s.keys.used(policy.Name, grant.Subject))
			return
		}
		pipe.Set(ctx, s.keys.used(policy.Name, grant.Subject), grant.Used, 0)
	})
}

// SetLimit implements [strategies.LimitSetter]: it sets the key that the script reads.
func (s *luaReserve) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	grants := make([]strategies.Grant, len(subjects))
	for i, subject := range subjects {
		grants[i].Subject = subject
	}
	return family.Provision(ctx, s.redis, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		pipe.Set(ctx, s.keys.limit(policy.Name, grant.Subject), policy.Limit, 0)
	})
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *luaReserve) Close(context.Context) error { return nil }

// syncOptions say when the sync runs.
var syncOptions = []quota.Option{
	{Name: "sync", Type: "duration", Default: "24h", Min: "0s"},
	{Name: "demand", Default: demandNever, Values: []string{demandNever, demandRejected}},
}

// The values of the option demand.
const (
	demandNever    = "never"
	demandRejected = "rejected"
)

// syncs is when an instance's sync runs.
type syncs struct {
	every    time.Duration
	onDemand bool
	wanted   *strategies.Flag
	wake     func(job string)
}

// onDemandJob is the name of the job that a rejection wakes.
const onDemandJob = "sync-on-demand"

func newSyncs(env strategies.Env) syncs {
	return syncs{
		every: env.Options.Duration("sync"), onDemand: env.Options["demand"] == demandRejected,
		wanted: new(strategies.Flag), wake: env.Wake,
	}
}

// want asks for a round, if one may be asked for.
func (s *syncs) want() {
	if s.onDemand {
		s.wanted.Store(true)
		s.wake(onDemandJob)
	}
}

// jobs are those that run a round: one for all instances by the clock, and one in
// each instance on demand.
func (s *syncs) jobs(round func(context.Context) (bool, error)) (jobs []strategies.Job) {
	if s.every > 0 {
		jobs = append(jobs, strategies.Job{Name: "sync", Singleton: true, Every: s.every, Run: round})
	}
	if s.onDemand {
		jobs = append(jobs, strategies.Job{Name: onDemandJob, Pending: s.wanted.Load,
			Run: func(ctx context.Context) (bool, error) {
				s.wanted.Store(false)
				return round(ctx)
			}})
	}
	return jobs
}

// Jobs implements [strategies.Jobber].
func (s *luaReserve) Jobs() []strategies.Job { return s.syncs.jobs(s.sync) }

// sync overwrites every tenant's count with the sum of its stored files. Between
// the sum and the SET, and for uploads that have not arrived yet, it is wrong,
// which is the record's own doing. The old value comes back with the SET only to
// tell whether anything changed.
func (s *luaReserve) sync(ctx context.Context) (changed bool, err error) {
	tenants, err := s.files.tenants(ctx)
	if err != nil {
		return false, err
	}
	for _, tenant := range tenants {
		sum, err := s.files.stored(ctx, tenant)
		if err != nil {
			return changed, err
		}
		want := strconv.FormatInt(sum, 10)
		old, err := s.redis.SetArgs(ctx, s.keys.used(tenant.policy, tenant.subject), want, redis.SetArgs{Get: true}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return changed, fmt.Errorf("overwriting what %s has used: %w", tenant.subject, err)
		}
		changed = changed || old != want
	}
	return changed, nil
}
