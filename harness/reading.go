package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Reading is what one tier believed of one subject at one moment.
type Reading struct {
	Subject uint32
	// Call and Reply are when the question was asked and answered, in nanoseconds
	// since the run's epoch.
	Call, Reply int64
	// Tier is the tier's name, with the region if regions have their own.
	Tier  string
	Units int64
	// Known is false if the tier holds no record of the subject.
	Known bool
	// Own is set if instances keep it to themselves.
	Own bool
}

// Subject is one holder of the policy in a run.
type Subject struct {
	Number uint32
	Name   quota.Subject
}

// maxReadings bounds the subjects whose counters are read at rest. If there
// are more, a sample drawn from the seed is read.
const maxReadings = 500

// Sample chooses the subjects to read, from those numbered below n that were
// touched.
func (p *Plan) Sample(touched []uint32, round int) []uint32 {
	if len(touched) <= maxReadings {
		return touched
	}
	out := slices.Clone(touched)
	rng := rand.New(seed.NewSource(p.Seed, seed.DriftSample, uint64(round)))
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	out = out[:maxReadings]
	slices.Sort(out)
	return out
}

// ReadConfig says how counters are read.
type ReadConfig struct {
	Policy *quota.Policy
	// Now is the run's clock, in nanoseconds since its epoch.
	Now func() int64
	// Parallel questions at a time; 1 if the runner is single-threaded.
	Parallel int
	// Region of an instance whose stores are its region's own; nil if all
	// instances share theirs.
	Region func(instance int) string
}

// Counts reports whether the strategy shows counters that can be checked against the
// truth.
func (s *Session) Counts() bool {
	if len(s.Instances) == 0 || s.Selection.Counts == quota.CountsNothing {
		return false
	}
	_, ok := s.Instances[0].(strategies.Viewer)
	return ok
}

// Read asks every instance for its counters of the given subjects. A record that
// every instance reads alike is told once for each region; records that instances
// keep to themselves are added up.
func (s *Session) Read(ctx context.Context, c ReadConfig, subjects []Subject) ([]Reading, error) {
	out := make([][]Reading, len(subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, c.Parallel))
	for i, sub := range subjects {
		if c.Parallel <= 1 {
			var err error
			out[i], err = s.readOne(ctx, c, sub)
			if err != nil {
				return nil, err
			}
			continue
		}
		g.Go(func() (err error) {
			out[i], err = s.readOne(ctx, c, sub)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(out...), nil
}

func (s *Session) readOne(ctx context.Context, c ReadConfig, sub Subject) ([]Reading, error) {
	var out []Reading
	for i, in := range s.Instances {
		v, ok := in.(strategies.Viewer)
		if !ok {
			continue
		}
		call := c.Now()
		got, err := guard.Ask(ctx, s.Deadline, "being read", func(ctx context.Context) ([]quota.Reading, error) {
			return v.Used(ctx, sub.Name, c.Policy)
		})
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		reply := c.Now()
		for _, g := range got {
			r := Reading{Subject: sub.Number, Call: call, Reply: reply, Tier: string(g.Tier), Units: g.Units, Known: g.Known, Own: g.PerInstance}
			if c.Region != nil && shared(g.Tier) {
				r.Tier += " " + c.Region(i)
			}
			out = merge(out, r)
		}
	}
	return out, nil
}

// shared reports whether a tier is a store and no instance's own memory.
func shared(t quota.Tier) bool { return t == quota.TierRedis || t == quota.TierPostgres }

// merge adds a reading to those of other instances. Records that instances keep to
// themselves add up. Each value that differs in one record that all see is a
// reading of its own: they contradict each other, and the truth tells which is off.
func merge(list []Reading, r Reading) []Reading {
	i := slices.IndexFunc(list, func(o Reading) bool {
		return o.Tier == r.Tier && (r.Own || o.Known == r.Known && o.Units == r.Units)
	})
	if i < 0 {
		return append(list, r)
	}
	o := &list[i]
	o.Call = min(o.Call, r.Call)
	o.Reply = max(o.Reply, r.Reply)
	if r.Own {
		o.Units = o.Units + r.Units
		o.Known = o.Known || r.Known
	}
	return list
}
