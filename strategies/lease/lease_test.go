package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// bed is a Redis in this process with a clock that a test moves, and the instances on it.
type bed struct {
	*testing.T
	clock.Wall // what no test here waits for

	table  *fakeredis.Table
	client *redis.Client
	shared *strategies.Shared
	now    time.Time
	opened int
	woken  []string // jobs
	// commands counts scripts that were sent.
	commands int
	// fail is what a script gives instead of an answer; after it took effect if late is set.
	fail error
	late bool
	// twice has a client library send each script again.
	twice bool
	// Each is called once: after the clock was read, after a script was carried out, and
	// when a caller waits.
	tick, done, waits func()
	// wakes lets callers go on that have waited, if it is not nil.
	wakes chan struct{}
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, table: fakeredis.New(), shared: &strategies.Shared{}}
	b.client = fakeredis.Client(b.table)
	b.client.AddHook(b)
	b.pass(0)
	t.Cleanup(func() {
		if err := b.client.Close(); err != nil {
			t.Error(err)
		}
		b.table.Close()
	})
	return b
}

func (b *bed) pass(d time.Duration) {
	if b.now.IsZero() {
		b.now = time.Date(2031, time.March, 15, 12, 0, 0, 0, time.UTC)
	}
	b.now = b.now.Add(d)
	b.table.SetNow(b.now.UnixNano())
	b.table.ExpireDue()
}

// Now implements [quota.Clock].
func (b *bed) Now() time.Time {
	now := b.now
	once(&b.tick)
	return now
}

func once(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

// DialHook implements [redis.Hook].
func (b *bed) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements [redis.Hook].
func (b *bed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements [redis.Hook].
func (b *bed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		b.commands++
		if b.fail != nil && !b.late {
			return b.fail
		}
		if b.twice {
			if err := next(ctx, cmd); err != nil {
				return err
			}
		}
		err := next(ctx, cmd)
		once(&b.done)
		if b.fail != nil {
			return b.fail
		}
		return err
	}
}

// open opens one of so many instances, with options as the command line takes them.
func (b *bed) open(options string, instances int) *lease {
	b.Helper()
	if options != "" {
		options = ":" + options
	}
	sel := testkit.Strategy(b, "lease"+options)
	s, err := sel.Open(b.Context(), strategies.Env{
		Clock: b, Clients: map[string]any{"redis": b.client}, Shared: b.shared,
		Rand:     rand.New(rand.NewPCG(1, uint64(b.opened))),
		Instance: b.opened, Instances: instances, Options: sel.Options, Wake: func(job string) {
			b.woken = append(b.woken, job)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.opened++
	return s.(*lease)
}

func limitOf(units int64) *quota.Policy {
	return &quota.Policy{Name: "p", Limit: units, Unit: "requests",
		Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
}

func (b *bed) take(s *lease, p *quota.Policy, units int64) quota.Decision {
	b.Helper()
	d, err := s.Take(b.Context(), quota.Request{Subject: "s", Policy: p, Units: units})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// takes asks n times for a unit, and returns how many were admitted.
func (b *bed) takes(s *lease, p *quota.Policy, n int) (admitted int64) {
	b.Helper()
	for range n {
		if b.take(s, p, 1).Admitted {
			admitted++
		}
	}
	return admitted
}

// used is what Redis has counted.
func (b *bed) used() int64 {
	b.Helper()
	keys := b.table.Keys(nil)
	if len(keys) != 1 {
		b.Fatalf("keys %v", keys)
	}
	n, err := b.client.HGet(b.Context(), keys[0].Name, "used").Int64()
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func (b *bed) round(s *lease) bool {
	b.Helper()
	changed, err := s.giveBack(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return changed
}

func (b *bed) want(what string, got, want int64) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %d, want %d", what, got, want)
	}
}

// TestBlock: a block is spent without commands, and its size is that of the option.
func TestBlock(t *testing.T) {
	for block, commands := range map[int]int64{1: 60, 10: 6, 20: 3} {
		b := newBed(t)
		s := b.open(fmt.Sprintf("block=%d", block), 1)
		p := limitOf(1000)
		b.want("admitted", b.takes(s, p, 60), 60)
		b.want(fmt.Sprintf("commands with block=%d", block), int64(b.commands), commands)
		if d := b.take(s, p, 1); d.Tier != quota.TierRedis {
			t.Errorf("block=%d: a new block came from %s", block, d.Tier)
		} else if d = b.take(s, p, 1); (d.Tier == quota.TierProcess) != (block > 1) || d.Remaining != 1000-62 {
			t.Errorf("block=%d: %+v", block, d)
		}
	}
}

// TestShrinks: near the limit blocks are what is left, divided by the instances, and then
// every request asks Redis. A share makes them smaller.
func TestShrinks(t *testing.T) {
	for _, c := range []struct {
		options   string
		instances int
		asked     []int // the requests that asked
	}{
		{"block=16", 1, []int{1, 17, 33}},
		{"block=16", 2, []int{1, 17, 29, 35, 38, 39, 40, 41}},
		{"block=16,share=0.5", 2, []int{1, 11, 18, 23, 27, 30, 32, 34, 35, 36, 37, 38, 39, 40, 41}},
		{"block=40,share=0.5", 1, []int{1, 21, 31, 36, 38, 39, 40, 41}},
	} {
		b := newBed(t)
		s := b.open(c.options, c.instances)
		p := limitOf(40)
		var asked []int
		for i := 1; i <= 41; i++ {
			before := b.commands
			if d := b.take(s, p, 1); d.Admitted != (i <= 40) {
				t.Errorf("%s: request %d of 40: %+v", c.options, i, d)
			}
			if b.commands > before {
				asked = append(asked, i)
			}
		}
		if c.instances == 1 && c.options == "block=16" {
			c.asked = append(c.asked, 41)
		}
		if !slices.Equal(asked, c.asked) {
			t.Errorf("%s, %d instances: requests %v asked Redis, want %v", c.options, c.instances, asked, c.asked)
		}
	}
	b := newBed(t)
	b.want("commands with share=0", func() int64 {
		b.takes(b.open("share=0", 1), limitOf(1000), 50)
		return int64(b.commands)
	}(), 50)
}

// TestDeadline: a block is spent until ttl - margin after the request for it. Then what was
// not spent goes back with the request for the next one.
func TestDeadline(t *testing.T) {
	for options, valid := range map[string]time.Duration{
		"": 9 * time.Second, "ttl=20s": 19 * time.Second, "margin=3s": 7 * time.Second, "margin=0s": 10 * time.Second,
	} {
		b := newBed(t)
		s := b.open(options, 1)
		p := limitOf(1000)
		b.done = func() { b.pass(time.Second) } // the answer is late, and the request was sent before
		b.takes(s, p, 1)
		b.pass(valid - time.Second - 1)
		b.takes(s, p, 1)
		b.want("commands before the end, "+options, int64(b.commands), 1)
		b.pass(1)
		b.takes(s, p, 1)
		b.want("commands at the end, "+options, int64(b.commands), 2)
		b.want("given back, "+options, s.returned.Load(), 98)
		b.want("used, "+options, b.used(), 2+100)
	}
}

// TestEndsWithWindow: the next window is charged anew, and the job forgets subjects without a
// word to Redis, also those that were rejected.
func TestEndsWithWindow(t *testing.T) {
	b := newBed(t)
	s := b.open("ttl=3h", 1)
	p := limitOf(30)
	for i := range 200 {
		if _, err := s.Take(t.Context(),
			quota.Request{Subject: quota.Subject(fmt.Sprint(i)), Policy: p, Units: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.takes(s, p, 31)
	b.pass(time.Hour)
	before := b.commands
	b.want("admitted in the next window", b.takes(s, p, 40), 30)
	b.want("commands for that", int64(b.commands-before), 1+1)
	b.pass(2*time.Hour - 1)
	b.tick = func() { b.pass(1 + grace) }
	if d := b.take(s, p, 1); !d.Admitted {
		t.Errorf("%+v: a request that came too late was not asked once more", d)
	}
	b.pass(time.Hour)
	before = b.commands
	b.round(s)
	if len(s.held)+len(s.owed) > 0 || b.commands > before {
		t.Errorf("%d subjects and %d debts are kept after their window, and %d commands were sent", len(s.held), len(s.owed),
			b.commands-before)
	}
}

// TestGivesBackOnce: what is idle goes back, once, however often Redis is told.
func TestGivesBackOnce(t *testing.T) {
	b := newBed(t)
	s := b.open("block=10", 1)
	p := limitOf(100)
	b.takes(s, p, 3)
	if changed := b.round(s); !changed || b.used() != 10 {
		t.Errorf("changed %t, %d used: a block in use was given back", changed, b.used())
	}
	b.fail = errors.New("lost")
	b.late = true
	if _, err := s.giveBack(t.Context()); err == nil || b.used() != 3 {
		t.Errorf("error %v, %d used; want an error after the block was given back", err, b.used())
	}
	b.fail = nil
	b.want("admitted after that", b.takes(s, p, 1), 1)
	b.twice = true
	if changed := b.round(s); !changed || b.used() != 4 {
		t.Errorf("changed %t, %d used, want 4: a block was given back more than once", changed, b.used())
	}
	b.twice = false
	b.takes(s, p, 1)
	b.fail = errors.New("gone")
	b.late = false
	if _, err := s.giveBack(t.Context()); err == nil || b.used() != 14 {
		t.Errorf("error %v, %d used, want 14: a block was given back without Redis", err, b.used())
	}
	b.fail = nil
	b.round(s)
	b.want("used when Redis is back", b.used(), 5)
	if b.round(s) || len(s.held)+len(s.owed) > 0 {
		t.Errorf("held %v, owed %v", s.held, s.owed)
	}
	b.takes(s, p, 5)
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.want("used after Close", b.used(), 10)
	}
}

// TestGivesBackItsOwn: a number that another instance has drawn since is not taken for its own.
func TestGivesBackItsOwn(t *testing.T) {
	b := newBed(t)
	a := b.open("block=10", 2)
	p := limitOf(100)
	b.takes(a, p, 1)
	if err := b.client.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := script.Load(t.Context(), b.client).Err(); err != nil {
		t.Fatal(err)
	}
	b.takes(b.open("block=10", 2), p, 1)
	b.round(a)
	b.want("used", b.used(), 10)
}

// TestGivesBackWhatIsGone: after Redis has lost its data, the debt of a block that went with them gives
// back nothing of a block that was drawn since.
func TestGivesBackWhatIsGone(t *testing.T) {
	b := newBed(t)
	s := b.open("block=10", 1)
	p := limitOf(1000)
	b.takes(s, p, 3)
	b.fail = errors.New("gone")
	b.take(s, p, 8) // which does not fit, and the block is owed
	b.fail = nil
	b.loses(nil)
	b.want("admitted since", b.takes(s, p, 11), 11)
	b.round(s)
	b.want("used after a draw that failed", b.used(), 11)

	b = newBed(t)
	s = b.open("block=10,prefetch=0.5", 1)
	b.takes(s, p, 7)
	b.loses(nil)
	b.fetch(s)
	b.take(s, p, 6) // which the block that was drawn ahead has room for
	b.fetch(s)
	b.want("used after two blocks were drawn ahead", b.used(), 20)
}

// TestSentAgain: a draw that a client library sends twice is charged once.
func TestSentAgain(t *testing.T) {
	b := newBed(t)
	s := b.open("block=10", 1)
	p := limitOf(100)
	b.twice = true
	b.want("admitted", b.takes(s, p, 10), 10)
	b.want("used", b.used(), 10)
}

// TestCrash: the block of an instance that is gone stays counted, or is free after its
// deadline, which leaks what was spent of it.
func TestCrash(t *testing.T) {
	for options, want := range map[string]int64{"block=10": 3 + 10, "block=10,expired=free": 3 + 1 + 10 + 9 - 1} {
		b := newBed(t)
		p := limitOf(20)
		admitted := b.takes(b.open(options, 2), p, 3)
		other := b.open(options, 2)
		admitted += b.takes(other, p, 30)
		b.want("admitted before the deadline, "+options, admitted, 13)
		b.pass(10 * time.Second)
		admitted += b.takes(other, p, 30)
		b.want("admitted in all, "+options, admitted, want)
	}
}

// TestPause: what is freed at a deadline is not spent after it, as long as a process stands
// still for less than the margin between its look at the clock and its answer, however long a
// request for a block takes.
func TestPause(t *testing.T) {
	for _, c := range []struct {
		name    string
		options string
		plant   func(*lease) // what is wrong
		leaks   bool
	}{
		{"margin", "expired=free", nil, false},
		{"no margin", "expired=free,margin=0s", nil, true},
		{"spent", "margin=0s", nil, false},
		{"negative margin", "expired=free", func(s *lease) { s.valid = 2 * s.ttl }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			p := limitOf(20)
			s := b.open(c.options, 2)
			other := b.open(c.options, 2)
			if c.plant != nil {
				c.plant(s)
			}
			admitted := b.takes(s, p, 1)
			b.pass(9500 * time.Millisecond)
			b.tick = func() {
				b.pass(900 * time.Millisecond)
				admitted += b.takes(other, p, 40)
			}
			admitted += b.takes(s, p, 1)
			if leaks := admitted > 20; leaks != c.leaks {
				t.Errorf("%d units of 20 were admitted", admitted)
			}
		})
	}
	for planted, leaks := range map[bool]bool{false: false, true: true} {
		b := newBed(t)
		p := limitOf(20)
		s := b.open("expired=free", 2)
		other := b.open("expired=free", 2)
		if planted {
			s.valid = 2 * s.ttl
		}
		admitted := int64(0)
		b.done = func() {
			b.pass(11 * time.Second)
			admitted += b.takes(other, p, 40)
		}
		admitted += b.takes(s, p, 5)
		if admitted > 20 != leaks {
			t.Errorf("a request for a block took longer than its ttl, planted %t: %d units of 20 were admitted", planted,
				admitted)
		}
	}
}

// TestDown: without Redis the block is spent, and then the option decides.
func TestDown(t *testing.T) {
	for options, open := range map[string]bool{"block=5": false, "block=5,down=open": true} {
		b := newBed(t)
		s := b.open(options, 1)
		p := limitOf(100)
		b.takes(s, p, 1)
		b.fail = errors.New("gone")
		for i := range 6 {
			d := b.take(s, p, 1)
			if i < 4 && (!d.Admitted || d.Degraded || d.Tier != quota.TierProcess) || i >= 4 &&
				(d.Admitted != open || !d.Degraded) {
				t.Errorf("%s: request %d without Redis: %+v", options, i, d)
			}
		}
		b.fail = nil
		b.want("admitted after that", b.takes(s, p, 200), 95)
	}
}

// TestGivesUp: a caller that has given up gets no decision, whether a block is held or not.
func TestGivesUp(t *testing.T) {
	b := newBed(t)
	s := b.open("down=open", 1)
	p := limitOf(1000)
	ctx, cancel := context.WithCancel(t.Context())
	b.done = cancel
	b.fail = context.Canceled
	b.late = true
	for i := range 2 {
		d, err := s.Take(ctx, quota.Request{Subject: "s", Policy: p, Units: 1})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %+v, %v", i, d, err)
		}
		b.fail = nil
		b.takes(s, p, 2)
	}
}

// TestJob: blocks are looked at twice in their time to live, and within the margin if Redis
// frees them.
func TestJob(t *testing.T) {
	for options, every := range map[string]time.Duration{
		"": 5 * time.Second, "ttl=40s": 20 * time.Second, "expired=free": 500 * time.Millisecond,
		"expired=free,margin=4s": 2 * time.Second,
	} {
		j := newBed(t).open(options, 1).Jobs()
		if len(j) != 1 || j[0].Every != every || j[0].Singleton {
			t.Errorf("%s: %+v, want a round every %v on each instance", options, j, every)
		}
	}
}

// TestInDoubt: after an error nobody knows whether Redis has taken back what was left of a
// block. It is not spent, and goes back once.
func TestInDoubt(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBed(t)
		s := b.open("block=10", 1)
		p := limitOf(30)
		b.takes(s, p, 4)
		b.fail = errors.New("gone")
		b.late = late
		if d := b.take(s, p, 8); d.Admitted {
			t.Errorf("%+v without Redis", d)
		}
		b.fail = nil
		if d := b.take(s, p, 1); !d.Admitted || d.Tier != quota.TierRedis {
			t.Errorf("%+v, want a new block", d)
		}
		for range 2 {
			b.round(s)
		}
		want := int64(5)
		if late {
			want += 10 // the request and its block were charged, and nobody heard of it
		}
		b.want("used", b.used(), want)
	}
}

// TestLimitChanges: a block that was drawn under another limit is not spent.
func TestLimitChanges(t *testing.T) {
	b := newBed(t)
	s := b.open("", 1)
	b.takes(s, limitOf(20), 3)
	b.want("admitted after the limit was lowered to 5", b.takes(s, limitOf(5), 10), 2)
	b.want("admitted after it was raised to 8", b.takes(s, limitOf(8), 10), 3)
}

// TestStranded counts what others hold when they would have made room.
func TestStranded(t *testing.T) {
	b := newBed(t)
	p := limitOf(10)
	s := b.open("", 2)
	other := b.open("", 2)
	b.takes(s, p, 1) // and 4 in its block
	b.want("admitted elsewhere", b.takes(other, p, 7), 5)
	b.want("false rejects", other.falseRejects.Load(), 2)
	b.want("stranded, sum", other.stranded.Load(), 8)
	b.want("stranded, most", other.strandedMost.Load(), 4)
	if r, err := other.Used(t.Context(), "s", p); err != nil || r[0].Units != 6 {
		t.Errorf("readings %+v, %v; want the 6 units that callers hold", r, err)
	}
	a := family.Account{Policy: "p", Subject: "s"}
	b.want("held by others than the first", s.heldBy(s.self, a, p.Window.At(b.now).Index), 0)
	b.want("held by others than the second", s.heldBy(other.self, a, p.Window.At(b.now).Index), 4)
	b.takes(s, p, 4)
	b.takes(other, p, 1)
	b.want("false rejects when nothing is held", other.falseRejects.Load(), 2)
	if d := b.take(s, p, 1); d.Admitted || s.falseRejects.Load() != 0 {
		t.Errorf("%+v, %d false rejects", d, s.falseRejects.Load())
	}
}

func TestMarginBelowTTL(t *testing.T) {
	if _, err := strategies.Parse("lease:ttl=1s,margin=1s"); err == nil {
		t.Error("a margin of the whole ttl is taken")
	}
}

// TestPrefetch: with a job that draws the next block before the current one is spent, no request but
// the first asks Redis; what is drawn ahead is given back, and nothing of it is lost if Redis fails.
func TestPrefetch(t *testing.T) {
	for _, c := range []struct {
		prefetch string
		asked    int // of 100 requests, how many asked Redis themselves
		wakes    int
	}{{"0", 10, 0}, {"0.5", 1, 10}, {"1", 1, 10}} {
		b := newBed(t)
		s := b.open("block=10,prefetch="+c.prefetch, 1)
		p := limitOf(1000)
		asked := 0
		wakes := 0
		for range 100 {
			if d := b.take(s, p, 1); !d.Admitted || d.Tier == quota.TierRedis {
				asked++
			}
			if len(b.woken) > 0 {
				b.fetch(s)
				wakes++
			}
		}
		if asked != c.asked || wakes != c.wakes || len(s.Jobs()) != 1+min(c.wakes, 1) {
			t.Errorf("prefetch=%s: %d requests asked Redis, want %d; the job was woken %d times, want %d", c.prefetch, asked,
				c.asked, wakes, c.wakes)
		}
		if fields := b.client.HLen(t.Context(), s.key("s", p, b.label(p))).Val(); fields > 2+3 {
			t.Errorf("prefetch=%s: %d fields in Redis: blocks that were spent are not settled", c.prefetch, fields)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.want("used after Close, prefetch="+c.prefetch, b.used(), 100)
	}
}

// TestPrefetchFails: a draw ahead that fails, or that finds too little, leaves the block as it is.
func TestPrefetchFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBed(t)
		s := b.open("block=10,prefetch=0.5", 1)
		p := limitOf(1000)
		b.takes(s, p, 6)
		b.fail = errors.New("gone")
		b.late = late
		if _, err := s.fetch(t.Context()); err == nil {
			t.Error("an error of Redis is not told")
		}
		b.fail = nil
		b.woken = nil
		b.takes(s, p, 1)
		b.fetch(s)
		b.want("admitted after that", b.takes(s, p, 20), 20)
		b.fetch(s)
		for range 2 {
			b.pass(10 * time.Second)
			b.round(s)
		}
		want := int64(27)
		if late {
			want += 10 // a block of which nobody heard
		}
		b.want("used in the end", b.used(), want)
	}
	b := newBed(t)
	s := b.open("block=10,prefetch=1", 2)
	p := limitOf(20)
	b.takes(s, p, 2)
	b.takes(b.open("block=1", 2), p, 10)
	b.fetch(s)
	b.want("admitted when nothing could be drawn", b.takes(s, p, 8), 8)
	b.want("times the job was woken for nothing", int64(len(b.woken)), 0)
}

// TestPrefetchIsCounted: Redis counts what callers have, also if it frees blocks at their deadline, which
// is before the last one of a subject is spent.
func TestPrefetchIsCounted(t *testing.T) {
	for _, prefetch := range []string{"0", "0.5", "1"} {
		b := newBed(t)
		s := b.open("block=20,expired=free,prefetch="+prefetch, 1)
		other := b.open("block=1,expired=free", 1)
		p := limitOf(1000)
		b.takes(s, p, 1)
		for n := range int64(80) {
			b.takes(s, p, 1)
			b.takes(other, p, 1)
			if len(b.woken) > 0 {
				b.fetch(s)
			}
			b.round(s)
			if r, err := s.Used(t.Context(), "s", p); err != nil || r[0].Units != 2*n+3 {
				t.Fatalf("prefetch=%s: after %v Redis counts %+v, and callers have %d; %v", prefetch,
					time.Duration(n)*500*time.Millisecond, r, 2*n+3, err)
			}
			b.pass(500 * time.Millisecond)
		}
	}
}

// fetch runs the job that draws blocks.
func (b *bed) fetch(s *lease) {
	b.Helper()
	if len(b.woken) == 0 {
		b.Error("the job was not woken")
	}
	b.woken = nil
	if _, err := s.fetch(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// label is that of the present window.
func (b *bed) label(p *quota.Policy) string { return p.Window.Label(p.Window.At(b.now).Index) }
