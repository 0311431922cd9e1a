package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Enumerate runs every schedule, without leaving out any that are alike, and
// counts those that leak. Errors are as those of [Run].
func Enumerate(ctx context.Context, sel strategies.Selection, cfg Config) (*results.Census, error) {
	cfg.enumerates = true
	cfg, err := cfg.Complete(sel)
	if err != nil {
		return nil, err
	}
	cfg.sofar = cmp.Or(cfg.sofar, new(progress))
	if cfg.isolates(sel) {
		return enumerateInChild(ctx, sel, &cfg)
	}
	cfg.First, cfg.began = false, clock.Nano()
	census, err := explored(ctx, sel, cfg, func(s *search) (*results.Census, error) { return s.enumerate(ctx) })
	if err != nil {
		return cfg.sofar.partialCensus(ctx, sel, cfg, err), err
	}
	return census, unseen(census.Withheld)
}

func (s *search) enumerate(ctx context.Context) (*results.Census, error) {
	census := &results.Census{Strategy: s.sel.String(), Policy: s.cfg.Policy.Name, Limit: s.cfg.Policy.Limit,
		Clients: s.cfg.Clients}
	census.Store = s.Traits.Store
	census.Service = redact.URLs(s.cfg.Service)
	s.cfg.sofar.note(nil, census, nil)
	var shortest *breakage
	var err error
	if s.Traits.State {
		shortest, err = s.everySchedule(ctx, census)
	} else {
		shortest, err = s.everyEnd(ctx, census)
	}
	if err != nil {
		return nil, err
	}
	if shortest != nil {
		if err := s.repeat(shortest); err != nil {
			return nil, err
		}
		census.Shortest = &shortest.Finding
	}
	census.Withheld = withheld(s.Witness)
	return census, nil
}

// everyEnd counts over an engine that has no state.
func (s *search) everyEnd(ctx context.Context, census *results.Census) (shortest *breakage, err error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	statelessSearch := s.newStatelessSearch()
	statelessSearch.wanted[Leak], statelessSearch.census = true, census
	if err := statelessSearch.walkAndControl(ctx, math.MaxInt, s.cfg.MaxSchedules); err != nil {
		return nil, err
	}
	census.Complete = statelessSearch.capped == ""
	census.Aborts, err = statelessSearch.repeatAborts()
	if breakage, ok := statelessSearch.found[Leak]; ok {
		shortest = &breakage
	}
	return shortest, err
}

// chunk is how many schedules are counted of a part before it is parted again, at most, and
// perBatch how many parts there are for each worker: so all of them stay near the first schedule
// that has not been counted.
const chunk, perBatch = 1024, 16

// everySchedule counts depth first. What it counts is the same with any number of workers.
func (s *search) everySchedule(ctx context.Context, census *results.Census) (_ *breakage, err error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	k := &counting{search: s, ctx: ctx, census: census, parts: []*part{{tree: new(sched.Tree)}}}
	crew := s.newWorkers(ctx)
	defer func() { err = errors.Join(err, crew.end()) }()
	for over := ""; over == "" && len(k.parts) > 0 && census.Schedules < s.cfg.MaxSchedules; {
		b := &counts{counting: k, parts: k.parts[:1], alone: true, most: k.left()}
		switch {
		case crew.size > 1 && census.Schedules < workersFrom: // opening further engines takes longer
			b.most = min(b.most, workersFrom)
		case crew.size > 1:
			b.parts = k.undone(perBatch * crew.size)
			b.alone = false
			b.most = min(chunk, b.most/int64(len(b.parts))+1)
		}
		b.of = len(b.parts)
		b.done = make([]atomic.Bool, len(b.parts))
		if b.alone {
			b.run(s)
		} else {
			err = crew.share(b)
		}
		over, err = k.take(b, err)
		if err != nil {
			return nil, err
		}
	}
	census.Complete = len(k.parts) == 0
	if k.left() > 0 { // it was ended early, and all that was counted counts
		for _, part := range k.parts {
			part.into(census, &k.shortest)
		}
	}
	return k.shortest, nil
}

// counting is an enumeration under way.
type counting struct {
	search *search
	ctx    context.Context // of the one enumeration that it serves
	// parts follow each other in the order of their schedules. What comes before the first
	// is in census and shortest.
	parts    []*part
	census   *results.Census
	shortest *breakage
	deepest  int
}

// counts are parts that are counted at the same time, the last ones first, which are the largest.
type counts struct {
	turns
	*counting
	parts []*part
	most  int64 // schedules of each part
	alone bool  // it is told after each schedule how far it has come
	// done marks the parts that were counted. A worker that was given up may yet write that of another one.
	done []atomic.Bool
}

// part is a tree of schedules that follow each other, and what was counted there.
type part struct {
	tree  *sched.Tree
	begin *sched.Tree // as it was in the beginning, once it is worked on
	// done is set once it was counted, and has passed on what was left of it.
	done bool
	// more is set if there are schedules left, over says why it was ended early, and err what went wrong.
	more bool
	over string
	err  error

	schedules, leaking, worst int64
	deepest                   int
	shortest                  *breakage // up to where it leaks
	// path and next are used again by each schedule.
	path, next []engine.Choice
}

// left is how many schedules may still be counted.
func (k *counting) left() int64 { return k.search.cfg.MaxSchedules - k.census.Schedules }

// run counts parts until there are none left. It begins with the last ones, which are the largest.
func (b *counts) run(s *search) {
	for {
		turn, ok := b.begin()
		if !ok {
			return
		}
		i := len(b.parts) - 1 - turn
		b.count(s, b.parts[i])
		b.done[i].Store(true)
	}
}

// count counts what a part holds.
func (b *counts) count(s *search, p *part) {
	p.begin = p.tree.Clone()
	for p.more = true; p.more && p.schedules < b.most; p.more = p.tree.Next() {
		p.over = s.over(b.ctx)
		if p.over != "" {
			return
		}
		p.err = s.count(p)
		if p.err != nil {
			return
		}
		if b.alone {
			b.told(p, p.tree.Share())
		}
	}
	if err := p.tree.Err(); err != nil {
		p.err = fmt.Errorf("%w: %w", ErrNotDeterministic, err)
	}
}

// told says how far it has come in a part.
func (k *counting) told(p *part, share float64) {
	census := *k.census
	l := k.shortest
	p.into(&census, &l)
	var broken []breakage
	if l != nil {
		broken = []breakage{*l}
	}
	k.search.cfg.sofar.note(nil, &census, broken)
	k.search.cfg.Progress.set(Sofar{Runs: census.Schedules, Depth: int64(max(k.deepest, p.deepest)), Share: share})
}

// undone are the first parts that have not been counted, so many at most.
func (k *counting) undone(most int) (out []*part) {
	for _, part := range k.parts {
		if !part.done && len(out) < most {
			out = append(out, part)
		}
	}
	return out
}

// take takes in what was counted, and parts what is left of it. It says why the enumeration is to
// end. broke is what a worker has ended with.
func (k *counting) take(b *counts, broke error) (over string, err error) {
	for i, p := range b.parts {
		err = broke
		if !b.done[i].Load() {
			break
		}
		p.done = true
		over = cmp.Or(over, p.over)
		err = p.err
		if err != nil {
			break
		}
		if p.more {
			var rest []*part
			for _, tree := range p.tree.Rest() {
				rest = append(rest, &part{tree: tree})
			}
			k.parts = slices.Insert(k.parts, slices.Index(k.parts, p)+1, rest...)
		}
	}
	share := 1.0
	for len(k.parts) > 0 && k.parts[0].done && k.left() > 0 {
		part := k.parts[0]
		if part.schedules > k.left() {
			part, err = k.beginning(part)
			if err != nil {
				return "", err
			}
		} else {
			k.parts = k.parts[1:]
		}
		part.into(k.census, &k.shortest)
		k.deepest = max(k.deepest, part.deepest)
	}
	if len(k.parts) > 0 {
		share = k.parts[0].tree.Share()
	}
	k.told(new(part), share)
	return over, cmp.Or(err, broke)
}

// beginning counts as many schedules of a part as may still be counted.
func (k *counting) beginning(p *part) (*part, error) {
	first := &part{tree: p.begin}
	for first.schedules < k.left() {
		if err := k.search.count(first); err != nil {
			return nil, err
		}
		first.tree.Next()
	}
	return first, nil
}

// into adds what was counted to what came before it.
func (p *part) into(census *results.Census, shortest **breakage) {
	census.Schedules += p.schedules
	census.Leaking += p.leaking
	census.Worst = max(census.Worst, p.worst)
	if p.shortest != nil && (*shortest == nil || len(p.shortest.path) < len((*shortest).path)) {
		*shortest = p.shortest
	}
}

// count runs the schedule that the tree of a part is at.
func (s *search) count(p *part) error {
	p.path = p.path[:0]
	var leak int64
	err := s.drive(func() (choice engine.Choice, ok bool) {
		p.next = s.Enabled(p.next[:0], false)
		if len(p.next) == 0 {
			return choice, false
		}
		return p.next[p.tree.Choose(len(p.next))], true
	}, func(choice engine.Choice) error {
		p.path = append(p.path, choice)
		now := s.Run.Truth.Leak()
		if now > 0 && leak == 0 && (p.shortest == nil || len(p.path) < len(p.shortest.path)) {
			detail := fmt.Sprintf("%s over the limit of %d", format.Units(now, "units"), s.cfg.Policy.Limit)
			p.shortest = &breakage{Finding{Property: Leak, Detail: detail, Units: now}, slices.Clone(p.path)}
		}
		leak = max(leak, now)
		return nil
	})
	if err != nil {
		return err
	}
	p.schedules++
	p.deepest = max(p.deepest, len(p.path))
	if leak > 0 {
		p.leaking++
		p.worst = max(p.worst, leak)
	}
	return nil
}
