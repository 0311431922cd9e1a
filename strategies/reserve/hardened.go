package reserve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	holdScript     = family.Script(files, "lua/hold.lua")
	applyScript    = family.Script(files, "lua/apply.lua")
	restoreScript  = family.Script(files, "lua/restore.lua")
	endedScript    = family.Script(files, "lua/ended.lua")
	believedScript = family.Script(files, "lua/believed.lua")
)

// settleGrace is how long after its end a reservation is left alone: a commit that
// was called in time may still be on its way.
const settleGrace = time.Second

// The faults that the hardened form tolerates. What Redis loses is lost: while its
// ledger is gone, nothing is known of uploads under way, so eviction is not
// tolerated.
var hardenedTolerates = []quota.Fault{
	quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultClock, quota.FaultOutage, quota.FaultLimit,
}

var hardenedMeta = family.GivingBack(strategies.Meta{
	Name:    "lua-reserve-hardened",
	Needs:   []strategies.Need{strategies.NeedRedis, strategies.NeedSource},
	Reset:   strategies.ResetsNever,
	Options: append([]quota.Option{urlOption}, syncOptions...),
	About:   strategies.About{Record: ofDesignRecord},
	Guarantee: []quota.Clause{
		quota.Exactly(hardenedTolerates...),
		family.NoFalseReject(),
	},
	Open: openHardened,
})

// hardened is ADR-RM-3's decision without its leaks.
//
// What Redis holds of a tenant is one ledger: two counters that only grow, of the
// units ever stored and ever deleted, and next to them the requests that hold
// units. The database numbers a tenant's changes, and the ledger takes each of them
// in once, so that Redis can be told of them late, twice, in any order and by
// anybody. A request's units stop being held in the very script that takes its file
// in, and never before the database has either stored the file or ruled it out.
type hardened struct {
	redis redis.UniversalClient
	keys  ledgerKeys
	files ledger
	urls  urls
	syncs syncs
	again strategies.Tally
}

func openHardened(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	files, err := family.OpenSource(ctx, env, openPostgresLedger, openModelLedger)
	if err != nil {
		return nil, err
	}
	s := &hardened{redis: strategies.Redis(env), keys: ledgerKeys{env.Prefix + "quota:{"}, files: files,
		urls: newURLs(env), syncs: newSyncs(env)}
	return s, family.Load(ctx, s.redis, holdScript, applyScript, restoreScript, endedScript, believedScript)
}

// ledgerKeys names a tenant's keys, which share a hash tag: quota:{tenant:ID}:used.
type ledgerKeys struct{ family string }

// of are the keys of a tenant's ledger and of its deadlines.
func (k ledgerKeys) of(t tenant) []string {
	base := k.family + segment(t.policy) + ":" + string(t.subject) + "}:"
	return []string{base + "used", base + "ends"}
}

// held is an answer of hold.lua.
type held struct {
	known, admitted bool
	used, limit     int64
	ended           int64 // reservations past their deadlines
}

// Take implements [strategies.Strategy].
func (s *hardened) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	t := tenant{req.Policy.Name, req.Subject}
	held, err := s.hold(ctx, t, req)
	if err != nil {
		return quota.Decision{}, err
	}
	// A ledger that Redis has lost is made anew, and if there is no room the
	// reservations that have ended make some.
	if !held.known || !held.admitted && held.ended > 0 {
		_, err := s.reconcile(ctx, t)
		if err == nil {
			held, err = s.hold(ctx, t, req)
		}
		if err != nil {
			return quota.Decision{}, err
		}
	}
	decision := quota.Decision{Admitted: held.admitted, Tier: quota.TierRedis, Remaining: max(0, held.limit-held.used)}
	if !held.admitted {
		s.syncs.want()
		return decision, nil
	}
	decision.Reservation = quota.Reservation{Request: req}
	if err := s.urls.make(req); err != nil {
		if failed := s.Refund(ctx, decision.Reservation); failed != nil {
			return quota.Decision{}, fmt.Errorf("%w, and %w", err, failed)
		}
		return quota.Decision{}, err
	}
	return decision, nil
}

// hold asks the script. A request without a settlement has no end.
func (s *hardened) hold(ctx context.Context, t tenant, req quota.Request) (held, error) {
	var life time.Duration
	if req.Settles {
		life = req.Life
	}
	id := fileOf(quota.Reservation{Request: req}).id
	res, err := twice(ctx, &s.again, func() ([]int64, error) {
		return family.Numbers(holdScript.Run(ctx, s.redis, s.keys.of(t), id, req.Units, life.Milliseconds(),
			settleGrace.Milliseconds()), 4)
	})
	if err != nil {
		return held{}, fmt.Errorf("reserving for %s: %w", t.subject, err)
	}
	return held{known: res[0] >= 0, admitted: res[0] == 1, used: res[1], limit: res[2], ended: res[3]}, nil
}

// twice does something once more, and counts that, if it fails without an answer of the
// store. It must be something that changes nothing if it has taken effect already.
func twice[T any](ctx context.Context, again *strategies.Tally, do func() (T, error)) (T, error) {
	v, err := do()
	if err == nil || ctx.Err() != nil || errors.As(err, new(redis.Error)) || errors.Is(err, errUnknownTenant) {
		return v, err
	}
	again.Add(1)
	return do()
}

// Measures implements [strategies.Meter].
func (s *hardened) Measures() []strategies.Measure {
	return []strategies.Measure{{Name: "repeated", Unit: "commands", Value: s.again.Load()}}
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *hardened) Close(context.Context) error { return nil }

// errEnded is what committing an upload gives whose reservation has ended, so
// its units may be another's.
var errEnded = errors.New("its reservation has ended, or its file was deleted")

// Commit implements [strategies.Committer]: the upload is done, and its file
// available. From then on the file's own size counts.
func (s *hardened) Commit(ctx context.Context, reservation quota.Reservation, actual int64) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	file := fileOf(reservation)
	c, err := twice(ctx, &s.again, func() (change, error) { return s.files.keep(ctx, file, actual) })
	if err != nil {
		return err
	}
	if _, err := s.apply(ctx, file.tenant, account{}, c); err != nil {
		return err
	}
	if c.stored == 0 || c.ended > 0 {
		return fmt.Errorf("committing %s of %s: %w", file.id, file.subject, errEnded)
	}
	return nil
}

// Refund implements [strategies.Refunder]: of an upload that failed, which can no
// longer be committed then, and of a file that is deleted. A second one changes
// nothing.
func (s *hardened) Refund(ctx context.Context, reservation quota.Reservation) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	file := fileOf(reservation)
	c, err := twice(ctx, &s.again, func() (change, error) { return s.files.drop(ctx, file) })
	if err != nil {
		return err
	}
	_, err = s.apply(ctx, file.tenant, account{}, c)
	return err
}

// apply tells Redis of changes of a tenant, and of its limit if a gives one.
func (s *hardened) apply(ctx context.Context, t tenant, a account, list ...change) (changed bool, err error) {
	args := []any{a.limit, a.revision}
	for _, change := range list {
		args = append(args, change.id, change.size, change.stored, change.ended)
	}
	n, err := twice(ctx, &s.again, func() (int64, error) {
		return applyScript.Run(ctx, s.redis, s.keys.of(t), args...).Int64()
	})
	return n == 1, family.Wrapf(err, "settling for %s", t.subject)
}

// Jobs implements [strategies.Jobber].
func (s *hardened) Jobs() []strategies.Job { return s.syncs.jobs(s.sync) }

// sync reconciles every tenant.
func (s *hardened) sync(ctx context.Context) (changed bool, err error) {
	tenants, err := s.files.tenants(ctx)
	if err != nil {
		return false, err
	}
	for _, tenant := range tenants {
		c, err := s.reconcile(ctx, tenant)
		if err != nil {
			return changed, err
		}
		changed = changed || c
	}
	return changed, nil
}

// reconcile brings a tenant's ledger up to what the database has, also under load:
// it only adds what is not there yet, as the callers do who settle meanwhile.
func (s *hardened) reconcile(ctx context.Context, t tenant) (changed bool, err error) {
	keys := s.keys.of(t)
	account, known, err := s.files.account(ctx, t)
	if err != nil || !known {
		return false, err
	}
	version, err := s.redis.HGet(ctx, keys[0], "version").Int64()
	if errors.Is(err, redis.Nil) {
		n, err := restoreScript.Run(ctx, s.redis, keys, account.limit, account.revision, account.stored, account.deleted,
			account.version).Int64()
		if err != nil {
			return false, fmt.Errorf("restoring the ledger of %s: %w", t.subject, err)
		}
		return n == 1, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the ledger of %s: %w", t.subject, err)
	}
	ended, err := endedScript.Run(ctx, s.redis, keys[1:], settleGrace.Milliseconds()).StringSlice()
	if err != nil {
		return false, fmt.Errorf("listing what has ended of %s: %w", t.subject, err)
	}
	var list []change
	if len(ended) > 0 {
		list, err = s.files.giveUp(ctx, t, ended)
		if err != nil {
			return false, err
		}
	}
	missing, err := s.files.changes(ctx, t, version)
	if err != nil {
		return false, err
	}
	return s.apply(ctx, t, account, append(list, missing...)...)
}

// Used implements [strategies.Viewer]. A reservation past its deadline is no use,
// though its units are kept until the database has been asked.
func (s *hardened) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	res, err := family.Numbers(believedScript.Run(ctx, s.redis, s.keys.of(tenant{policy.Name, subject})), 3)
	if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", subject, err)
	}
	return []quota.Reading{{Tier: quota.TierRedis, Known: res[0] == 1, Units: res[1], Lapsing: res[2]}}, nil
}

// Provision implements [strategies.Provisioner].
func (s *hardened) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	accounts, err := s.files.provision(ctx, policy.Name, grants)
	if err != nil {
		return err
	}
	return family.Provision(ctx, s.redis, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		account := accounts[grant.Subject]
		keys := s.keys.of(tenant{policy.Name, grant.Subject})
		pipe.Del(ctx, keys...)
		pipe.HSet(ctx, keys[0], "limit", account.limit, "revision", account.revision, "stored", account.stored, "deleted",
			account.deleted,
			"version", account.version, "held", 0)
	})
}

// SetLimit implements [strategies.LimitSetter]: the database numbers the limits of a
// tenant, and Redis takes one that is newer than its own.
func (s *hardened) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	accounts, err := s.files.setLimit(ctx, policy.Name, subjects, policy.Limit)
	if err != nil {
		return err
	}
	for _, subject := range subjects {
		account, ok := accounts[subject]
		if !ok {
			continue
		}
		if _, err := s.apply(ctx, tenant{policy.Name, subject}, account); err != nil {
			return err
		}
	}
	return nil
}
