package hardened

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
	"github.com/quotabench/quotabench/strategies/tiered"
)

//go:embed notes.md lua/*.lua
var files embed.FS

const (
	// drawPatience is how long a draw keeps others from drawing: longer than a statement
	// takes on a busy database, and as long as callers wait for one that has died.
	drawPatience = 2 * time.Second
	// belief is how long Redis believes that the database has nothing left. Units that
	// come back end it at once; it bounds for how long they are overlooked if the
	// caller who gave them back dies before telling Redis.
	belief = time.Minute
	// near is at which share of the limit several regions draw no more than is asked for.
	near = 4
	// firstWait and longestWait bound the pauses of a caller who waits for another's draw.
	firstWait, longestWait = time.Millisecond, 64 * time.Millisecond
	// mostDraws is after how many draws that came to nothing the database decides alone.
	mostDraws = 8
	// purgeEvery is how often windows that ended more than purgeAfter ago are removed.
	purgeEvery, purgeAfter = time.Hour, 24 * time.Hour
)

func init() {
	family.Register(files, family.GivingBack(strategies.Meta{
		Name:         "three-tier-hardened",
		Needs:        []strategies.Need{strategies.NeedRedis, strategies.NeedSource},
		SharesMemory: true,
		Options: []quota.Option{
			{Name: "draws", Type: "int", Default: "16", Min: "1", Max: "1000000"},
			{Name: "recall", Type: "duration", Default: "1s", Min: "0s", Max: "1m"},
			{Name: "lease", Type: "duration", Default: "1s", Min: "0s", Max: "1m"},
		},
		About: strategies.About{Record: tiered.Promises()},
		Guarantee: []quota.Clause{
			quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
				quota.FaultClock, quota.FaultEviction, quota.FaultOutage),
			family.NoFalseReject(),
		},
		Open: open,
	}))
}

// instance is one application instance.
type instance struct {
	clock  quota.Clock
	redis  redis.UniversalClient
	source source
	prefix string
	draws  int64
	lease  time.Duration
	leases *leases
	demand demand
	// region is set if it may be one of several that have a Redis each; every is how
	// often it is asked to return credit.
	region string
	every  time.Duration
	// name begins the tokens of this instance, tokens counts them. Tokens are compared
	// for equality and with nothing but what this instance has not given out yet.
	name   string
	tokens strategies.Tally

	asked, drawn, waited, stale, alone, returned strategies.Tally
}

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	src, err := family.OpenSource(ctx, env, openPostgres, openModel)
	if err != nil {
		return nil, fmt.Errorf("open the database of record: %w", err)
	}
	if err := family.Load(ctx, strategies.Redis(env), takeScript, depositScript, clearScript, forgetScript,
		reclaimScript); err != nil {
		return nil, err
	}
	span := env.Options.Duration("lease")
	in := &instance{
		clock: env.Clock, redis: strategies.Redis(env), source: src, prefix: env.Prefix,
		draws: env.Options.Int("draws"), lease: span,
		leases: newLeases(env.Clock, int64(span), env.Subjects),
		name:   strconv.Itoa(env.Instance) + "-" + strconv.FormatUint(env.Rand.Uint64(), 36) + "-",
	}
	in.every = env.Options.Duration("recall")
	if in.every > 0 && env.Region != "" {
		in.region = env.Region
		if err := src.enroll(ctx, in.region); err != nil {
			return nil, fmt.Errorf("enroll the region %s: %w", in.region, err)
		}
	}
	return in, nil
}

// Take implements strategies.Strategy.
func (in *instance) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := in.clock.Now()
	a := ask{
		account: accountAt(req.Policy, req.Subject, now), units: req.Units, settles: req.Settles,
	}
	if req.Policy.Window.Kind.Tumbling() { // elsewhere units come back all the time
		a.lease = in.lease
	}
	if a.lease > 0 && in.leases.rejects(a.leaseKey(), req.Units) {
		return a.rejected(quota.TierFilter, answer{left: -1}, now), nil
	}
	decision, err := in.decide(ctx, &a, now)
	if err == nil && decision.Admitted {
		decision.Reservation = quota.Reservation{Request: req, Window: a.window}
	}
	return decision, err
}

// decide asks Redis, and draws if its credit does not do.
func (in *instance) decide(ctx context.Context, a *ask, now time.Time) (quota.Decision, error) {
	wait := firstWait
	for draws := 0; draws < mostDraws; {
		a.token = in.name + strconv.FormatInt(in.tokens.Add(1), 36)
		sent := in.clock.Now().UnixNano()
		in.asked.Add(1)
		got, err := in.take(ctx, a)
		if err != nil {
			return in.withoutRedis(ctx, a, now, err)
		}
		switch got.status {
		case statusAdmitted:
			return a.admitted(quota.TierRedis, got), nil
		case statusRejected:
			if got.span > 0 {
				in.leases.add(a.leaseKey(), a.units, sent+int64(got.span))
			}
			return a.rejected(quota.TierRedis, got, now), nil
		case statusBusy:
			in.waited.Add(1)
			if wait == firstWait {
				in.demand.add(a.leaseKey(), a.units)
				defer in.demand.add(a.leaseKey(), -a.units)
			}
			if err := in.clock.Sleep(ctx, max(min(wait, got.span), time.Millisecond)); err != nil {
				return quota.Decision{}, fmt.Errorf("wait for another's draw: %w", err)
			}
			wait = min(2*wait, longestWait)
		case statusDraw:
			decision, done, err := in.draw(ctx, a, got.credit, now)
			if done || err != nil {
				return decision, err
			}
			draws++
		default:
			return quota.Decision{}, fmt.Errorf("take.lua answered with status %d", got.status)
		}
	}
	return in.ownDecision(ctx, a, now)
}

// draw charges the database, deposits what it got, and takes the request's units from
// that. done is false if the request has to be asked anew.
func (in *instance) draw(ctx context.Context, a *ask, credit int64,
	now time.Time) (decision quota.Decision, done bool, err error) {
	least := max(a.units-credit, 1)
	batch := max(least, in.demand.of(a.leaseKey()))
	w := want{units: max(batch, a.limit/in.draws), least: least, batch: batch, near: a.limit / near, region: in.region}
	drew, err := in.source.draw(ctx, &a.account, w)
	if err != nil {
		// Others need not wait for the draw's end. If this fails they do.
		_, _ = in.deposit(ctx, a, 0, drawn{}, 0)
		return decision, true, err
	}
	in.drawn.Add(1)
	got, err := in.deposit(ctx, a, a.units, drew, in.believed(&w, &drew))
	if err != nil {
		decision, err = in.withoutRedis(ctx, a, now, err)
		return decision, true, err
	}
	switch got.status {
	case statusAdmitted:
		return a.admitted(in.source.tier(), got), true, nil
	case statusRejected:
		return a.rejected(in.source.tier(), got, now), true, nil
	case statusStale:
		in.stale.Add(drew.granted)
	}
	return decision, false, nil
}

// believed is for how long Redis believes after a draw that the database has nothing
// left. Other regions may return something, or give units back, which this one's Redis is
// not told of.
func (in *instance) believed(w *want, d *drawn) time.Duration {
	switch {
	case d.several && d.granted < w.least:
		return min(in.every, belief)
	case !d.several && d.granted < w.units:
		return belief
	default:
		return 0
	}
}

// withoutRedis has the database decide if Redis did not answer.
func (in *instance) withoutRedis(ctx context.Context, a *ask, now time.Time, err error) (quota.Decision, error) {
	if gone := family.GaveUp(ctx, in.clock); gone {
		return quota.Decision{}, fmt.Errorf("ask Redis: %w", err)
	}
	decision, sourceErr := in.ownDecision(ctx, a, now)
	if sourceErr != nil {
		return quota.Decision{}, fmt.Errorf("ask Redis: %w; %w", err, sourceErr)
	}
	return decision, nil
}

// ownDecision charges the database for the request and nothing else.
func (in *instance) ownDecision(ctx context.Context, a *ask, now time.Time) (quota.Decision, error) {
	in.alone.Add(1)
	drew, err := in.source.draw(ctx, &a.account, want{units: a.units, whole: true})
	if err != nil {
		return quota.Decision{}, err
	}
	decision := a.rejected(in.source.tier(), answer{left: -1}, now)
	if drew.granted == a.units {
		decision = a.admitted(in.source.tier(), answer{left: -1})
	}
	decision.Degraded = true // the credit in Redis was left out
	return decision, nil
}

func (a *ask) admitted(tier quota.Tier, got answer) quota.Decision {
	return quota.Decision{Admitted: true, Tier: tier, Remaining: got.remaining()}
}

func (a *ask) rejected(tier quota.Tier, got answer, now time.Time) quota.Decision {
	decision := quota.Decision{Tier: tier, Remaining: got.remaining()}
	if !a.ends.IsZero() {
		decision.RetryAfter = max(a.ends.Sub(now), 0)
	}
	return decision
}

// remaining units are the credit and what the database has in addition.
func (g answer) remaining() int64 {
	if g.left < 0 {
		return -1
	}
	return g.credit + g.left
}

// demand is what callers of an instance wait for while another draws: the next draw is
// at least as large, so that it serves them all.
type demand struct {
	mu    sync.Mutex
	units map[leaseKey]int64
}

func (d *demand) add(k leaseKey, units int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.units == nil {
		d.units = map[leaseKey]int64{}
	}
	d.units[k] += units
	if d.units[k] == 0 {
		delete(d.units, k)
	}
}

func (d *demand) of(k leaseKey) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.units[k]
}

var (
	takeScript    = family.Script(files, "lua/take.lua")
	depositScript = family.Script(files, "lua/deposit.lua")
	clearScript   = family.Script(files, "lua/clear.lua")
	forgetScript  = family.Script(files, "lua/forget.lua")
	reclaimScript = family.Script(files, "lua/reclaim.lua")
)

// What the scripts answer first.
const (
	statusRejected int64 = iota
	statusAdmitted
	statusDraw
	statusBusy
	statusStale
	statusAgain
)

// answer is a script's.
type answer struct {
	status int64
	// credit that the account has now, and left of the database's units, or -1.
	credit, left int64
	// for how long a rejection may be repeated, or another draw may take.
	span time.Duration
}

// ask is what both scripts of a request are asked.
type ask struct {
	account
	units   int64
	token   string
	settles bool
	// lease is how long a rejection may be remembered.
	lease time.Duration
}

func (in *instance) take(ctx context.Context, a *ask) (answer, error) {
	return read(takeScript.Run(ctx, in.redis, []string{a.key(in.prefix)},
		a.units, a.token, drawPatience.Milliseconds(), a.expiry(), flag(a.settles), a.lease.Milliseconds(), a.limit))
}

// deposit ends a draw with what it got, and takes units of that. dry says for how long
// it is believed that the database has nothing left; 0 is that it has.
func (in *instance) deposit(ctx context.Context, a *ask, units int64, got drawn, dry time.Duration) (answer, error) {
	return read(depositScript.Run(ctx, in.redis, []string{a.key(in.prefix)},
		a.token, got.granted, flag(dry > 0), units, dry.Milliseconds(), flag(a.settles), a.limit, got.left))
}

func read(cmd *redis.Cmd) (answer, error) {
	n, err := family.Numbers(cmd, 4)
	if err != nil {
		return answer{}, err
	}
	return answer{n[0], n[1], n[2], time.Duration(n[3]) * time.Millisecond}, nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
