package sliding

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// bench is a Redis whose time is set by hand, for a strategy and for its clock.
type bench struct {
	clock.Wall
	t        *testing.T
	server   *miniredis.Miniredis
	client   *redis.Client
	now      time.Time
	ids      uint64
	strategy strategies.Strategy
	events   []oracle.Event
}

var start = time.Date(2031, time.March, 15, 12, 0, 0, 0, time.UTC)

func newBench(t *testing.T, meta *strategies.Meta, given quota.Options) *bench {
	t.Helper()
	b := &bench{t: t, server: miniredis.RunT(t)}
	b.client = redis.NewClient(&redis.Options{Addr: b.server.Addr()})
	t.Cleanup(func() { _ = b.client.Close() })
	b.at(0)
	sel, err := meta.Select(given)
	if err != nil {
		t.Fatal(err)
	}
	b.strategy, err = meta.Open(t.Context(),
		strategies.Env{Clients: map[string]any{"redis": b.client}, Clock: b, Prefix: "t:", Options: sel.Options,
			Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Now implements [quota.Clock].
func (b *bench) Now() time.Time { return b.now }

// at moves the time to so long after the start.
func (b *bench) at(d time.Duration) {
	if passed := start.Add(d).Sub(b.now); !b.now.IsZero() && passed > 0 {
		b.server.FastForward(passed)
	}
	b.now = start.Add(d)
	b.server.SetTime(b.now)
}

// take asks for units, and writes down what came of it.
func (b *bench) take(p *quota.Policy, units int64) quota.Decision {
	b.t.Helper()
	b.ids++
	d, err := b.strategy.Take(b.t.Context(), quota.Request{ID: b.ids, Subject: "a", Policy: p, Units: units})
	if err != nil {
		b.t.Fatal(err)
	}
	m := int64(b.now.Sub(start))
	e := oracle.Event{Call: m, Reply: m, Units: units}
	if !d.Admitted {
		e.Outcome = oracle.Rejected
	}
	b.events = append(b.events, e)
	return d
}

// used is what the strategy shows.
func (b *bench) used(p *quota.Policy) int64 {
	b.t.Helper()
	r, err := b.strategy.(strategies.Viewer).Used(b.t.Context(), "a", p)
	if err != nil || len(r) != 1 {
		b.t.Fatal(r, err)
	}
	return r[0].Units
}

func (b *bench) verdict(p *quota.Policy) oracle.Verdict {
	return oracle.Judge(oracle.Config{Window: p.Window, Limit: p.Limit, Epoch: start}, b.events)
}

func rolling(limit int64) *quota.Policy {
	return &quota.Policy{Name: "login", Limit: limit, Unit: "attempts",
		Window: quota.Window{Kind: quota.Rolling, Length: time.Minute}}
}

// buckets are the strategies that must tell the same of every bucket.
var buckets = []*strategies.Meta{&tokenBucketMeta, &gcraMeta}

// TestBucketsDoNotRound: every decision, what is shown, and the time to wait are
// those of a bucket kept in fractions, also at rates that divide nothing.
func TestBucketsDoNotRound(t *testing.T) {
	for _, m := range buckets {
		t.Run(m.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			for range testenv.Pick(5, 25) {
				p := &quota.Policy{Name: "calls", Limit: 1 + r.Int64N(9), Unit: "calls", Window: quota.Window{
					Kind: quota.Bucket, Refill: 1 + r.Int64N(13), Length: time.Duration(1+r.Int64N(9_999_999)) * time.Microsecond,
				}}
				b := newBench(t, m, nil)
				rate := big.NewRat(p.Window.Refill, p.Window.Length.Microseconds())
				level := new(big.Rat).SetInt64(p.Limit)
				last := int64(0)
				admitted := 0
				for range 60 {
					us := last + r.Int64N(1+int64(p.Window.Length/time.Microsecond)/p.Window.Refill)
					b.at(time.Duration(us) * time.Microsecond)
					level.Add(level, new(big.Rat).Mul(rate, new(big.Rat).SetInt64(us-last)))
					if full := new(big.Rat).SetInt64(p.Limit); level.Cmp(full) > 0 {
						level = full
					}
					last = us
					units := 1 + r.Int64N(min(3, p.Limit))
					want := level.Cmp(new(big.Rat).SetInt64(units)) >= 0
					d := b.take(p, units)
					if d.Admitted != want {
						t.Fatalf("%s at %d µs, level %s, asked %d: admitted %v", p.Text(), us, level.FloatString(9), units, d.Admitted)
					}
					if want {
						admitted++
						level.Sub(level, new(big.Rat).SetInt64(units))
					} else {
						short := new(big.Rat).Sub(new(big.Rat).SetInt64(units), level)
						short.Quo(short, rate) // microseconds, rounded up
						wait := new(big.Int).Div(new(big.Int).Add(short.Num(), new(big.Int).Sub(short.Denom(), big.NewInt(1))),
							short.Denom())
						if d.RetryAfter.Microseconds() != wait.Int64() {
							t.Fatalf("%s: retry after %v, not %v µs", p.Text(), d.RetryAfter, wait)
						}
					}
					whole := new(big.Int).Div(level.Num(), level.Denom()).Int64()
					if d.Remaining != whole || b.used(p) != p.Limit-whole {
						t.Fatalf("%s: remaining %d, used %d; %s are left", p.Text(), d.Remaining, b.used(p), level.FloatString(9))
					}
				}
				if v := b.verdict(p); v.LeakUnits != 0 || v.FalseRejects != 0 {
					t.Fatalf("%s: %+v", p.Text(), v)
				}
				if admitted == 0 || admitted == 60 {
					t.Fatalf("%s: %d of 60 admitted, which shows nothing", p.Text(), admitted)
				}
			}
		})
	}
}

// TestBucketOverWindows: a bucket lets through its size and the limit in one length
// of time, which is what its clause says, and rejects nothing that a rolling window
// has room for.
func TestBucketOverWindows(t *testing.T) {
	for _, m := range buckets {
		for given, want := range map[string]int64{"0": 5, "2": 2, "8": 8} {
			b := newBench(t, m, quota.Options{"burst": given})
			p := rolling(5)
			for ms := range int64(60_000 / 250) {
				b.at(time.Duration(ms) * 250 * time.Millisecond)
				for b.take(p, 1).Admitted {
				}
			}
			v := b.verdict(p)
			params := quota.Params{Limit: 5, Policy: p, Options: quota.Options{"burst": given}}
			if bound := flowGuarantee[1].Bound(params); bound != want || v.LeakWorst > want || v.LeakWorst < want-1 {
				t.Errorf("%s with a burst of %s: leak %d, bound %d; should be %d or one less", m.Name, given, v.LeakWorst, bound,
					want)
			}
			if rejects := flowGuarantee[2].Bound(params); (rejects == 0) != (want >= 5) || rejects == 0 && v.FalseRejects != 0 {
				t.Errorf("%s with a burst of %s: %d false rejects, at most %d", m.Name, given, v.FalseRejects, rejects)
			}
		}
	}
}

// TestWeightedIsReached: a window that is used up at its very end and again before the
// next one ends lets through 2 L - 1 units in one window's length.
func TestWeightedIsReached(t *testing.T) {
	b := newBench(t, &counterMeta, nil)
	p := rolling(5)
	for _, at := range []time.Duration{time.Minute - time.Millisecond, 2*time.Minute - 2*time.Millisecond} {
		b.at(at)
		for b.take(p, 1).Admitted {
		}
	}
	v := b.verdict(p)
	if bound := quota.Weighted().Bound(quota.Params{Limit: 5}); v.LeakWorst != 4 || bound != 4 || v.Admitted.Units != 9 {
		t.Errorf("leak %d of %d admitted, bound %d; should be 4 of 9, 4", v.LeakWorst, v.Admitted.Units, bound)
	}
	if v.FalseRejects != 0 {
		t.Errorf("%d false rejects", v.FalseRejects)
	}
	// What was used in one burst long ago is weighed as if it had been spread.
	b = newBench(t, &counterMeta, nil)
	for b.take(p, 1).Admitted {
	}
	b.at(61 * time.Second)
	if d := b.take(p, 1); d.Admitted || d.RetryAfter != 11*time.Second {
		t.Errorf("%+v: should have to wait for 11 s", d)
	}
	if v := b.verdict(p); v.FalseRejects != 1 {
		t.Errorf("%d false rejects, should be 1", v.FalseRejects)
	}
}

// TestCounterRefund: what is given back leaves the window that it was charged to,
// also when another has begun.
func TestCounterRefund(t *testing.T) {
	b := newBench(t, &counterMeta, nil)
	p := rolling(4)
	held := b.take(p, 4).Reservation
	b.at(time.Minute)
	if n := b.used(p); n != 4 {
		t.Errorf("%d used at the next window's begin, should be 4", n)
	}
	if err := b.strategy.(strategies.Refunder).Refund(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if n := b.used(p); n != 0 || !b.take(p, 4).Admitted {
		t.Errorf("%d used after the refund", n)
	}
}

// TestLogKnowsRequests: a command or a refund that is repeated changes nothing.
func TestLogKnowsRequests(t *testing.T) {
	b := newBench(t, &logMeta, nil)
	p := rolling(3)
	ctx := context.Background()
	req := quota.Request{ID: 7, Subject: "a", Policy: p, Units: 2}
	for range 3 {
		if d, err := b.strategy.Take(ctx, req); err != nil || !d.Admitted || d.Remaining != 1 {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	b.at(20 * time.Second)
	if d := b.take(p, 2); d.Admitted || d.RetryAfter != 40*time.Second {
		t.Errorf("%+v: should have to wait for 40 s", d)
	}
	if !b.take(p, 1).Admitted || b.used(p) != 3 {
		t.Errorf("%d used, should be 3", b.used(p))
	}
	for range 2 {
		if err := b.strategy.(strategies.Refunder).Refund(ctx, quota.Reservation{Request: req}); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.used(p); n != 1 {
		t.Errorf("%d used after the refund, should be 1", n)
	}
	b.at(80*time.Second - time.Microsecond)
	if n := b.used(p); n != 1 {
		t.Errorf("%d used just before a minute has passed, should be 1", n)
	}
	b.at(80 * time.Second)
	if b.used(p) != 0 {
		t.Errorf("%d used after a minute", b.used(p))
	}
	if _, err := b.strategy.Take(ctx, quota.Request{ID: 9, Subject: "a", Policy: p, Units: mostEntries + 1}); err == nil {
		t.Error("a request of too many entries is logged")
	}
}

// TestExplored: no schedule breaks what they declare, as time passes and without.
func TestExplored(t *testing.T) {
	take := explore.Action{Kind: explore.Take, Units: 1}
	bucket := quota.Policy{Name: "calls", Limit: 1, Unit: "calls",
		Window: quota.Window{Kind: quota.Bucket, Length: time.Second, Refill: 3}}
	type search struct {
		meta   *strategies.Meta
		policy quota.Policy
	}
	all := []search{{&gcraMeta, bucket}, {&tokenBucketMeta, bucket}, {&logMeta, *rolling(1)}}
	for _, c := range testenv.Pick(all[:1], all) {
		sel, err := c.meta.Select(nil)
		if err != nil {
			t.Fatal(err)
		}
		faults := [][]quota.Fault{nil, {quota.FaultClock}}
		for _, faults := range testenv.Pick(faults[:1], faults) {
			r, err := explore.Run(t.Context(), sel, explore.Config{
				Policy: c.policy, Limit: 1, Clients: 2, Instances: 2, Faults: faults,
				Scripts: []explore.Script{{take, take}, {take}},
			})
			if err != nil || r.Capped != "" || len(r.Findings) > 0 {
				t.Errorf("%s with %v: %v, capped %q, findings %+v", c.meta.Name, faults, err, r.Capped, r.Findings)
			}
		}
	}
}

// TestServesFlow: what Lua cannot count exactly is refused.
func TestServesFlow(t *testing.T) {
	p := quota.Policy{Name: "p", Limit: 1 << 20, Unit: "calls",
		Window: quota.Window{Kind: quota.Bucket, Refill: 1, Length: time.Hour}}
	if err := servesFlow(&p); err != nil {
		t.Error(err)
	}
	p.Window.Length = 24_000 * time.Hour
	if servesFlow(&p) == nil {
		t.Error("2^20 units in 24,000 hours of microseconds are served")
	}
}
