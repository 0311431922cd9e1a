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
	Audit:   family.Text(files, "audit_hardened.yaml"),
	Options: append([]quota.Option{urlOption}, syncOptions...),
	Record:  ofRecord,
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
	if err := family.Load(ctx, strategies.Redis(env), holdScript, applyScript, restoreScript, endedScript, believedScript); err != nil {
		return nil, err
	}
	return &hardened{redis: strategies.Redis(env), keys: ledgerKeys{env.Prefix + "quota:{"}, files: files,
		urls: newURLs(env), syncs: newSyncs(env)}, nil
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
	h, err := s.hold(ctx, t, req)
	if err != nil {
		return quota.Decision{}, err
	}
	// A ledger that Redis has lost is made anew, and if there is no room the
	// reservations that have ended make some.
	if !h.known || !h.admitted && h.ended > 0 {
		_, err := s.reconcile(ctx, t)
		if err == nil {
			h, err = s.hold(ctx, t, req)
		}
		if err != nil {
			return quota.Decision{}, err
		}
	}
	d := quota.Decision{Admitted: h.admitted, Tier: quota.TierRedis, Remaining: max(0, h.limit-h.used)}
	if !h.admitted {
		s.syncs.want()
		return d, nil
	}
	d.Reservation = quota.Reservation{Request: req}
	if err := s.urls.make(req); err != nil {
		if failed := s.Refund(ctx, d.Reservation); failed != nil {
			return quota.Decision{}, fmt.Errorf("%w, and %w", err, failed)
		}
		return quota.Decision{}, err
	}
	return d, nil
}

// hold asks the script. A request without a settlement has no end.
func (s *hardened) hold(ctx context.Context, t tenant, req quota.Request) (held, error) {
	var life time.Duration
	if req.Settles {
		life = req.Life
	}
	id := fileOf(quota.Reservation{Request: req}).id
	res, err := twice(ctx, &s.again, func() ([]int64, error) {
		return family.Numbers(holdScript.Run(ctx, s.redis, s.keys.of(t), id, req.Units, life.Milliseconds(), settleGrace.Milliseconds()), 4)
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
