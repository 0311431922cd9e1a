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
func (s *Session) Read(ctx context.Context, config ReadConfig, subjects []Subject) ([]Reading, error) {
	out := make([][]Reading, len(subjects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, config.Parallel))
	for i, sub := range subjects {
		if config.Parallel <= 1 {
			var err error
			out[i], err = s.readOne(ctx, config, sub)
			if err != nil {
				return nil, err
			}
			continue
		}
		group.Go(func() (err error) {
			out[i], err = s.readOne(ctx, config, sub)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(out...), nil
}

func (s *Session) readOne(ctx context.Context, config ReadConfig, sub Subject) ([]Reading, error) {
	var out []Reading
	for i, strategy := range s.Instances {
		viewer, ok := strategy.(strategies.Viewer)
		if !ok {
			continue
		}
		call := config.Now()
		got, err := guard.Ask(ctx, s.Deadline, "being read", func(ctx context.Context) ([]quota.Reading, error) {
			return viewer.Used(ctx, sub.Name, config.Policy)
		})
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		reply := config.Now()
		for _, reading := range got {
			r := Reading{Subject: sub.Number, Call: call, Reply: reply, Tier: string(reading.Tier), Units: reading.Units,
				Known: reading.Known, Own: reading.PerInstance}
			if config.Region != nil && shared(reading.Tier) {
				r.Tier += " " + config.Region(i)
			}
			out = merge(out, r)
		}
	}
	return out, nil
}

// shared reports whether a tier is a store and no instance's own memory.
func shared(tier quota.Tier) bool { return tier == quota.TierRedis || tier == quota.TierPostgres }

// merge adds a reading to those of other instances. Records that instances keep to
// themselves add up. Each value that differs in one record that all see is a
// reading of its own: they contradict each other, and the truth tells which is off.
func merge(list []Reading, reading Reading) []Reading {
	i := slices.IndexFunc(list, func(o Reading) bool {
		return o.Tier == reading.Tier && (reading.Own || o.Known == reading.Known && o.Units == reading.Units)
	})
	if i < 0 {
		return append(list, reading)
	}
	o := &list[i]
	o.Call = min(o.Call, reading.Call)
	o.Reply = max(o.Reply, reading.Reply)
	if reading.Own {
		o.Units = o.Units + reading.Units
		o.Known = o.Known || reading.Known
	}
	return list
}
