package strategytest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// checkJobs: background work has a name and an occasion, and comes to rest when
// no request comes.
func checkJobs(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := openBy(tb, meta, stores, 1, nil, testClock{Clock: hasty{newSetClock()}})
	jobber, ok := fixture.instances[0].(strategies.Jobber)
	if !ok {
		tb.Skip("has no jobs")
	}
	policy := anyKind(tb, meta, stores)
	book := fixture.book(withLimit(policy, 3))
	for range 3 {
		book.exhaust(book.subject(0), 6)
	}
	jobs := jobber.Jobs()
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
		if j.Name == "" || j.Run == nil {
			tb.Fatalf("job %q has no name, or nothing to run", j.Name)
		}
		if j.Every <= 0 && j.Pending == nil {
			tb.Errorf("job %s never runs: it has no period and cannot be woken", j.Name)
		}
	}
	unique(tb, "job", names)
	settle(fixture.ctx(), tb, jobs)
	for _, j := range jobs {
		if j.Pending != nil && j.Pending() {
			tb.Errorf("job %s still has work after a round that changed nothing", j.Name)
		}
	}
}

// settle runs all jobs until a round of every one changes nothing.
func settle(ctx context.Context, tb testing.TB, jobs []strategies.Job) {
	tb.Helper()
	const rounds = 20
	for range rounds {
		idle := true
		for _, j := range jobs {
			changed, err := j.Run(ctx)
			if err != nil {
				tb.Fatalf("job %s: %v", j.Name, err)
			}
			idle = idle && !changed
		}
		if idle {
			return
		}
	}
	tb.Errorf("after %d rounds without a request the jobs still change something", rounds)
}

// checkCancelled: a caller that has given up gets an error, and no decision.
func checkCancelled(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	policy := anyKind(tb, meta, stores)
	book := fixture.book(withLimit(policy, 5))
	subject := book.subject(0)
	cancelled, cancel := context.WithCancel(fixture.ctx())
	cancel()
	expired, cancel := context.WithDeadline(fixture.ctx(), clock.Wall{}.Now().Add(-time.Second))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{cancelled, context.Canceled}, {expired, context.DeadlineExceeded}} {
		decision, err := book.try(c.ctx, 0, subject, 1)
		if !errors.Is(err, c.want) {
			tb.Errorf("a context with %q gives the decision %+v and the error %v", c.want, decision, err)
		}
	}
	// Nothing of that may have hurt those who still wait.
	admitted, _ := book.exhaust(book.subject(0), 10)
	book.within("after callers that gave up", admitted, 10)
	book.hold()
}

// checkOutage: without its stores a strategy makes no decision, or one that is
// marked as made without them.
func checkOutage(tb testing.TB, meta *strategies.Meta, stores Stores) {
	if len(meta.Needs) == 0 {
		tb.Skip("needs no store")
	}
	fixture := open(tb, meta, stores, 1)
	if fixture.needsOthers && fixture.breakOthers == nil {
		tb.Skip("needs a store that cannot be broken here")
	}
	policy := anyKind(tb, meta, stores)
	const limit = 5
	book := fixture.book(withLimit(policy, limit))
	before := book.subject(0)
	fresh := book.subject(0)
	after := book.subject(0)
	book.exhaust(before, 3)

	fixture.breakStores(true)
	for s, used := range map[*subject]int{&before: 3, &fresh: 0} {
		for range 10 {
			began := clock.Nano()
			decision, err := book.try(fixture.ctx(), 0, *s, 1)
			if decision.Admitted {
				used++
			}
			if err == nil && !decision.Degraded && (decision.Tier != quota.TierProcess || used > limit) {
				tb.Errorf("%+v, number %d of a limit of %d, was made while every store was out of order, and is not marked as "+
					"degraded (or, within the limit, as made in the process)", decision, used, limit)
			}
			if clock.Nano()-began > int64(patience) {
				break // it tries again and again by itself
			}
		}
	}
	book.hold(quota.FaultOutage)
	if strategies.Postgres(fixture.env) != nil {
		return // it does not come back
	}
	fixture.breakStores(false)
	if fixture.needsOthers {
		book.reconnect(fresh)
	}
	admitted, _ := book.exhaust(after, 10)
	book.within("after the outage", admitted, 10)
}

// reconnect asks for s until a client that looks for its server in its own time has
// found it again.
func (b *book) reconnect(s subject) {
	b.Helper()
	var err error
	for from := clock.Nano(); clock.Nano()-from < int64(restLimit); wait(10 * time.Millisecond) {
		_, err = b.try(b.ctx(), 0, s, 1)
		if err == nil {
			return
		}
	}
	b.Fatalf("%v after the outage its store still gives an error: %v", restLimit, err)
}

// restLimit bounds how long the suite waits for what comes to rest in its own time. Tests
// of wrong strategies shorten it.
var restLimit = time.Minute

// patience is how long one request may take in an outage before the suite is content
// with it.
const patience = time.Second

// checkClose: an instance that closes takes nothing with it that others need, and
// leaves nothing running.
func checkClose(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	policy := anyKind(tb, meta, stores)
	book := fixture.book(withLimit(policy, 20))
	subject := book.subject(0)
	book.take(subject, 1) // connections are made by now

	before := runtime.NumGoroutine()
	second := fixture.open(1)
	fixture.instances = append(fixture.instances, second)
	if _, err := book.try(fixture.ctx(), 1, subject, 1); err != nil {
		tb.Fatal(err)
	}
	fixture.instances = fixture.instances[:1]
	for i := range 2 {
		if err := second.Close(fixture.ctx()); err != nil {
			tb.Errorf("closing for the %d. time: %v", i+1, err)
		}
	}
	book.take(subject, 1)
	after := 0
	for from := clock.Nano(); after == 0 || clock.Nano()-from < int64(restLimit); wait(10 * time.Millisecond) {
		after = runtime.NumGoroutine()
		if after <= before {
			return
		}
	}
	stacks := make([]byte, 1<<16)
	tb.Errorf("%d goroutines before an instance opened, %d after it closed:\n%s", before, after,
		stacks[:runtime.Stack(stacks, true)])
}
