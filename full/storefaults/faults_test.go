//go:build linux

package storefaults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/stores"
)

// act is how a fault is made.
type act struct {
	// inflict does it. It may put it right again before it returns.
	inflict func(ctx context.Context) error
	// mend puts it right once the run is over; nil if there is nothing to do.
	mend func(ctx context.Context) error
}

// victim is a store to which faults happen.
type victim struct {
	acts map[string]act // by the name of the fault
	// open is a handle of the store for one run, as a user's that was running already.
	open func(ctx context.Context) (stores.Store, error)
	// left is what runs have left there.
	left func(ctx context.Context) ([]string, error)
}

// victims start a store of each kind.
var victims = map[string]func(t *testing.T) *victim{
	"Redis": redisVictim, "Redis with a replica": failoverVictim, "Redis Cluster": clusterVictim,
	"PostgreSQL": postgresVictim,
	"etcd":       etcdVictim, "ZooKeeper": zookeeperVictim, "NATS": natsVictim,
}

// passTimer tells when a pass begins, and when it is over.
type passTimer struct{ begun, over chan struct{} }

func (b passTimer) StartTimer() { close(b.begun) }
func (b passTimer) StopTimer()  { close(b.over) }

// What is asked for: more than the limit of each subject, at a rate that leaves time for
// other runs.
const (
	faultRate     = 400 // requests per second
	faultSubjects = 24
	faultLimit    = 2
	faultHistory  = 200_000 // events
)

// How long a run lasts, when the fault comes, how long a store is away that comes back in
// mid-run, and how long it may take to answer a look, at first.
const (
	faultRun     = 300 * time.Millisecond
	faultAfter   = 40 * time.Millisecond
	faultLasts   = 120 * time.Millisecond
	faultTimeout = 250 * time.Millisecond
)

// overtime is how much longer a whole measurement may take than its pass: it ends, although
// a store does not answer.
const overtime = 2 * time.Minute

// scaleKey is the key under which a context has the scale of an attempt.
type scaleKey struct{}

// scale is how many times as long as at first a fault lasts in this attempt.
func scale(ctx context.Context) time.Duration {
	n, _ := ctx.Value(scaleKey{}).(time.Duration)
	return max(n, 1)
}

// halted is for how long a store stands still, so that it misses a look and no call of the
// strategy ends before it goes on.
func halted(ctx context.Context) time.Duration { return 2 * faultTimeout * min(scale(ctx), 4) }

// fewFaults of a Redis are always made, and all others with QUOTABENCH_LONG.
var fewFaults = []string{"FLUSHALL", "memory full", "one counter overwritten", "all counters raised by 1",
	"all counters lowered by 1"}

// TestFaultsOfStores: what others do to a store in mid-run is the store's fault. It is
// named, the run is invalid, no strategy is said to have broken its word, and nothing is
// left behind once the store is back.
func TestFaultsOfStores(t *testing.T) {
	every := monitor.Every
	timeout := monitor.Timeout
	t.Cleanup(func() {
		monitor.Every = every
		monitor.Timeout = timeout
	})
	// A store to which nothing happens has long to answer: the machine may be busy.
	monitor.Every = 10 * time.Millisecond
	monitor.Timeout = time.Minute
	var calm, all sync.WaitGroup // they mostly wait, so that more may run than there are cores
	defer all.Wait()
	tight := make(chan struct{})
	for store, start := range victims {
		if testenv.Pick(store != "Redis", false) {
			continue
		}
		calm.Add(1)
		calmed := sync.OnceFunc(calm.Done)
		run := func(t *testing.T) {
			v := start(t)
			made := map[string]bool{}
			t.Run("nothing", func(t *testing.T) { v.calm(t, store) })
			calmed()
			<-tight
			for _, f := range faults {
				if f.store != store {
					continue
				}
				made[f.name] = true
				if testenv.Pick(slices.Contains(fewFaults, f.name), true) {
					t.Run(f.name, func(t *testing.T) { v.suffer(t, &f, v.acts[f.name]) })
				}
			}
			for name := range v.acts {
				if !made[name] {
					t.Errorf("%q is not in the table", name)
				}
			}
		}
		all.Go(func() {
			defer calmed() // if the store is missing, or -run leaves it out
			t.Run(store, run)
		})
	}
	calm.Wait()
	monitor.Timeout = faultTimeout
	close(tight)
}

// calm has the strategy of the store's first fault use it while nothing happens.
func (v *victim) calm(t *testing.T, store string) {
	f := faults[slices.IndexFunc(faults, func(f fault) bool { return f.store == store })]
	r, _ := v.attempt(t, &f, act{inflict: func(context.Context) error { return nil }}, faultRun, 1)
	if !r.Audit.Valid || slices.ContainsFunc(r.Audit.Reasons, func(x results.Reason) bool {
		return strings.HasPrefix(x.Code, "store-")
	}) {
		t.Errorf("%+v", r.Audit)
	}
	if r.Drift == nil || r.Cost.Probe == nil {
		t.Errorf("drift %+v, cost %+v", r.Drift, r.Cost)
	}
}

// attempts is how often a fault is made which on a busy machine comes too late, or is over
// before a request meets it: each time in a run of three times the length.
const attempts = 5

// suffer has a strategy use the store while the fault is made.
func (v *victim) suffer(t *testing.T, f *fault, a act) {
	lasts := max(f.lasts, faultRun)
	longer := time.Duration(1)
	for try := 1; ; try++ {
		r, inTime := v.attempt(t, f, a, lasts, longer)
		if t.Failed() {
			return
		}
		if inTime && (f.met(&r) || try == attempts) {
			f.check(t, &r)
			readable(t, r)
			return
		}
		if try == attempts {
			t.Fatalf("the fault took longer than a run of %v", lasts)
		}
		t.Logf("a run of %v was too short", lasts)
		lasts = 3 * lasts
		longer = 2 * longer
	}
}

// met reports whether a request met the fault, and a look while it lasted. What the store
// forgets a look finds out afterwards, too.
func (f *fault) met(r *results.Run) bool {
	return (r.Audit.Has(f.code) || f.does == forgets && f.code != "store-changed") &&
		(r.Errors > 0 || !strings.Contains(f.does, fails)) && (r.Degraded > 0 || f.does != without)
}

// attempt makes the fault in one run. inTime is false if the run was over before that
// was done.
func (v *victim) attempt(t *testing.T, f *fault, a act, lasts, longer time.Duration) (r results.Run, inTime bool) {
	ctx := t.Context()
	store, err := v.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	timer := passTimer{make(chan struct{}), make(chan struct{})}
	made := make(chan error, 1)
	go func() {
		select {
		case <-timer.begun:
		case <-ctx.Done():
		}
		_ = (clock.Wall{}).Sleep(ctx, faultAfter)
		err := a.inflict(context.WithValue(ctx, scaleKey{}, longer))
		select {
		case <-timer.over:
		default:
			inTime = true
		}
		made <- err
	}()
	began := clock.Nano()
	r = measured(t, f.strategy, store, func(cfg *measure.Config) {
		cfg.Timer = timer
		cfg.Cores = measure.Cores{Mode: measure.CoresShared}
		cfg.Duration, cfg.Policy.Limit, cfg.Load, cfg.HistoryLimit = lasts, max(f.limit, faultLimit), harness.Closed(),
			faultHistory
		cfg.Stream.Set("subjects", faultSubjects)
		cfg.Workers = 4
		if !f.busy {
			cfg.Load = harness.OpenAt(faultRate)
		}
	})
	if took := time.Duration(clock.Nano() - began); took > lasts+overtime {
		t.Errorf("it took %v", took)
	}
	err = <-made
	if a.mend != nil {
		err = errors.Join(err, a.mend(ctx))
	}
	if err := errors.Join(err, store.Close()); err != nil {
		t.Error(err)
	}
	if left, err := v.left(ctx); err != nil || len(left) > 0 {
		t.Errorf("%q is left (%v)", left, err)
	}
	return r, inTime
}

// check checks a run against what the table says.
func (f *fault) check(t *testing.T, r *results.Run) {
	t.Helper()
	if r.Err() == nil {
		t.Errorf("the run is valid: %+v", r.Audit)
	}
	found := ""
	for _, x := range r.Audit.Reasons {
		if x.Code == f.code {
			found += x.Detail + "\n"
		}
	}
	if !strings.Contains(found, f.says) || !strings.Contains(found, "between ") && f.code != "store-evicted" {
		t.Errorf("%s says %q, want %q and when; audit %+v", f.code, found, f.says, r.Audit)
	}
	var open []string
	for _, x := range r.Guarantee {
		switch x.Verdict {
		case results.Broken:
			t.Errorf("%s is blamed: %+v", f.strategy, x)
		case results.Undecided:
			open = append(open, x.Property)
		}
	}
	if got := strings.Join(open, ", "); got != f.undecided {
		t.Errorf("undecided are %q, want %q; it declares %+v", got, f.undecided, r.Guarantee)
	}
	if strings.Contains(f.does, fails) != (r.Errors > 0) || (f.does == without) != (r.Degraded > 0) {
		t.Errorf("%q, and %d requests failed (%s) and %d were decided without the store, of %d", f.does, r.Errors,
			r.FirstError, r.Degraded, r.Issued)
	}
	if r.Issued == 0 || r.ThroughputPerS == 0 {
		t.Errorf("nothing was measured: %+v", r)
	}
}

// readable writes what was measured and reads it again.
func readable(t *testing.T, r results.Run) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.json")
	if err := codec.Write(path, results.File{Kind: results.Measured, Runs: []results.Run{r}}); err != nil {
		t.Fatal(err)
	}
	f, err := codec.Read(path)
	if err != nil || len(f.Runs) != 1 || f.Runs[0].Issued != r.Issued ||
		!slices.Equal(f.Runs[0].Audit.Reasons, r.Audit.Reasons) {
		t.Errorf("read again: %+v, %v", f.Runs, err)
	}
}

// suffers has a fault befall a store for as long as lasts says.
func suffers(s stores.Breakable, fault string, lasts func(context.Context) time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		mend, err := s.Break(ctx, fault, "")
		if err != nil {
			return err
		}
		_ = (clock.Wall{}).Sleep(ctx, lasts(ctx))
		return mend(ctx)
	}
}

// briefly is how long a store is away that comes back in mid-run.
func briefly(ctx context.Context) time.Duration { return faultLasts * scale(ctx) }

// killed is a store that ends, and comes back when the run is over.
func killed(s stores.Breakable, back func(context.Context) error) act {
	var mend func(context.Context) error
	return act{
		inflict: func(ctx context.Context) (err error) {
			mend, err = s.Break(ctx, "restarted", "")
			return err
		},
		mend: func(ctx context.Context) error {
			if mend == nil {
				return nil
			}
			return errors.Join(mend(ctx), back(ctx))
		},
	}
}

// inTurn does one thing after the other, with a while between them, and ends with the
// first that fails.
func inTurn(steps ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for i, step := range steps {
			if i > 0 {
				_ = (clock.Wall{}).Sleep(ctx, briefly(ctx))
			}
			if err := step(ctx); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		return nil
	}
}

// TestNothingIsNoticed: on stores that nobody touches, nothing is.
func TestNothingIsNoticed(t *testing.T) {
	timeout := monitor.Timeout
	t.Cleanup(func() { monitor.Timeout = timeout })
	monitor.Timeout = time.Minute // the machine may be busy
	r := measured(t, "incr-expire", storetest.Redis(t), func(cfg *measure.Config) { cfg.Load = harness.Closed() })
	if !r.Audit.Valid || r.Audit.Has("store-failed") || r.Audit.Has("store-lost-data") {
		t.Errorf("%+v", r.Audit)
	}
	if n := r.Cost.KeysWithoutTTL; n != 0 {
		t.Errorf("the mark is among the keys: %d of %d", n, r.Cost.KeysAtEnd)
	}
}
