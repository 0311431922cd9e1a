package tiered

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// resetter knows which windows the counts belong to. An operator would have one
// entry per kind of use in a table of nightly and hourly work; here the policies
// that come by say when a window has ended.
type resetter struct {
	mu   sync.Mutex
	seen [useCount]struct {
		policy *quota.Policy
		// window is that of the counts, latest the last that was seen.
		window, latest int64
		// woken is set from the first sight of a later window to the reset.
		woken bool
	}
	regions *regions
}

// regions have a Redis each, all of which the job of one of them empties.
type regions struct {
	mu   sync.Mutex
	list []region
}

// region is a place with a Redis, through which an instance there leads.
type region struct {
	name    string
	through *instance
}

// newResetter is that of an instance.
func newResetter(env strategies.Env, in *instance) *resetter {
	all := strategies.SharedValue(env.Shared, "tiered.regions", func() *regions { return new(regions) })
	all.mu.Lock()
	defer all.mu.Unlock()
	own, _ := collect.In(&all.list, region{name: env.Region}, func(r region) bool { return r.name == env.Region })
	own.through = in
	return &resetter{regions: all}
}

// everywhere are the regions so far.
func (r *regions) everywhere() []region {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// see notes a policy in force and reports whether a window of it has ended for
// the first time since the last reset. What comes first is the window that the
// counts belong to.
func (r *resetter) see(u *use, policy *quota.Policy, window int64) (ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &r.seen[u.index]
	if k.policy == nil || k.policy.Name != policy.Name {
		k.policy = policy
		k.window = window
		k.latest = window
		k.woken = false
		return false
	}
	if window >= k.latest { // a caller that was slow does not bring an older policy back
		k.policy = policy
		k.latest = window
	}
	if window <= k.window || k.woken {
		return false
	}
	k.woken = true
	return true
}

// due returns the kinds of use that have a window to be reset at the moment now.
func (r *resetter) due(now time.Time) (due []dueReset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.seen {
		k := &r.seen[i]
		if k.policy == nil {
			continue
		}
		if window := k.policy.Window.At(now).Index; window > k.window {
			due = append(due, dueReset{i, window})
		}
	}
	return due
}

func (r *resetter) done(reset dueReset) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := &r.seen[reset.use]
	k.window = reset.window
	k.woken = false
}

type dueReset struct {
	use    int
	window int64
}

func (in *instance) resetJob() strategies.Job {
	return strategies.Job{
		Name: jobReset, Singleton: true, Every: resetEvery,
		Pending: func() bool { return len(in.resets.due(in.clock.Now())) > 0 },
		Run:     in.reset,
	}
}

// reset begins a new window if one has ended, for all agents at once.
func (in *instance) reset(ctx context.Context) (changed bool, err error) {
	for _, reset := range in.resets.due(in.clock.Now()) {
		if err := in.zero(ctx, &in.uses[reset.use]); err != nil {
			return changed, fmt.Errorf("reset %s: %w", in.uses[reset.use].name, err)
		}
		in.resets.done(reset)
		changed = true
	}
	return changed, nil
}

// zero clears one kind of use. What is not cleared: write-backs that are still queued, and the filters,
// which learn when they are next rebuilt.
func (in *instance) zero(ctx context.Context, u *use) error {
	// The table comes first: a miss in between would bring the old counts back.
	subjects, err := in.source.reset(ctx, u.real())
	if err != nil {
		return err
	}
	for _, region := range in.resets.regions.everywhere() {
		if err := region.through.forget(ctx, u, subjects); err != nil {
			return err
		}
	}
	return nil
}

// forget drops the counts of one kind of use from the instance's Redis.
func (in *instance) forget(ctx context.Context, u *use, subjects []quota.Subject) error {
	for _, subject := range subjects {
		err := in.redis.HDel(ctx, in.counts(subject), u.field).Err()
		if err != nil {
			return fmt.Errorf("drop what %s has used: %w", subject, err)
		}
	}
	if in.filter == nil {
		return nil // without filters there is no shared set
	}
	// The shared set goes for all kinds of use. A subject that is over quota for another kind is still
	// rejected by Redis, which has the exact count.
	err := in.redis.Del(ctx, in.overQuota()).Err()
	return family.Wrapf(err, "forget who was over quota")
}
