package explore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/sched"
)

// chunk is how many schedules a worker counts before it parts with the rest of its tree,
// at most: so all of them stay near the first schedule that has not been counted.
const chunk = 1024

// everySchedule counts depth first. What it counts is the same with any number of workers.
func (s *search) everySchedule(ctx context.Context, c *Census, so *progress) (*breakage, error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	k := &counting{ctx: ctx, so: so, census: c, most: s.cfg.MaxSchedules, progress: s.cfg.Progress}
	k.changed.L = &k.mu
	first := &part{tree: new(sched.Tree)}
	k.parts = []*part{first}
	size := 1
	if _, ok := s.Engine.(engine.Forker); ok {
		size = s.cfg.Workers
	}
	k.alone = size == 1
	if size > 1 {
		k.join(s, workersFrom) // opening further engines takes longer than so many schedules
		for range size - 1 {
			if !k.idle() {
				k.begin(s)
			}
		}
		defer k.wait(s.cfg.gaveUp)()
	}
	k.join(s, 0)
	return k.result(s)
}

// counting is an enumeration under way.
type counting struct {
	ctx      context.Context //nolint:containedctx // of the one enumeration that it serves
	so       *progress
	progress *Progress
	most     int64 // schedules
	alone    bool  // one worker counts

	mu      sync.Mutex
	changed sync.Cond
	// parts follow each other in the order of their schedules. What comes before the first
	// is in census and shortest.
	parts    []*part
	census   *Census
	shortest *leakage
	deepest  int
	// cut is the part in which the last schedule lies that is to be counted; nil for none.
	cut  *part
	over string // why it ended early
	err  error
	// helpers at work.
	helpers int
}

// part is a tree of schedules that follow each other, and what was counted there.
type part struct {
	tree  *sched.Tree
	begin *sched.Tree // as it was in the beginning, once it is worked on
	// working and done say how far it is.
	working, done bool

	schedules, leaking, worst int64
	deepest                   int
	shortest                  *leakage
	// path and next are used again by each schedule.
	path, next []engine.Choice
}

// leakage is a schedule that leaks, up to where it does.
type leakage struct {
	path   []engine.Choice
	detail breach
}

func (l *leakage) breakage() *breakage {
	if l == nil {
		return nil
	}
	return &breakage{l.detail.finding(), l.path}
}

// begin has another engine help.
func (k *counting) begin(s *search) {
	k.mu.Lock()
	k.helpers++
	k.mu.Unlock()
	go s.beside(k.ctx, func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.helpers--
		k.fail(err)
		k.changed.Broadcast()
	}, func(own *search) error {
		k.join(own, 0)
		return nil
	})
}

// wait returns a function that waits for the helpers. They leave, too, where nobody waits
// any more.
func (k *counting) wait(gaveUp <-chan struct{}) func() {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-gaveUp:
			k.mu.Lock()
			k.over = givenUp
			k.changed.Broadcast()
			k.mu.Unlock()
		}
	}()
	return func() {
		k.mu.Lock()
		if !k.ended() && len(k.parts) > 0 { // the strategy has ended this goroutine
			k.over = givenUp
		}
		for k.helpers > 0 {
			k.changed.Wait()
		}
		k.mu.Unlock()
		close(ended)
	}
}

// givenUp is why an enumeration ends whose result nobody reads.
const givenUp = "given up"

func (k *counting) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// ended reports whether no further part is to be begun.
func (k *counting) ended() bool { return k.err != nil || k.over != "" || k.cut != nil }

// idle reports whether nothing is left to do.
func (k *counting) idle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended() || len(k.parts) == 0
}

// take returns the first part that nobody works on; nil if nothing is left.
func (k *counting) take() *part {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.ended() && len(k.parts) > 0 {
		for _, p := range k.parts {
			if !p.working && !p.done {
				p.working, p.begin = true, p.tree.Clone()
				return p
			}
		}
		k.changed.Wait()
	}
	return nil
}

// join counts until nothing is left, or at least so many schedules where most is not 0.
func (k *counting) join(s *search, most int64) {
	for {
		p := k.take()
		if p == nil {
			return
		}
		limit := int64(chunk)
		if most > 0 {
			limit = most
		}
		more, err := k.work(s, p, limit, k.alone || most > 0)
		k.put(p, more, err)
		if most > 0 {
			return
		}
	}
}

// work counts what a part holds, at most so many schedules, and reports whether there are
// more. alone has it say after each how far it has come.
func (k *counting) work(s *search, p *part, limit int64, alone bool) (more bool, err error) {
	limit = min(limit, k.most)
	for more = true; more && p.schedules < limit; more = p.tree.Next() {
		if over := s.over(k.ctx); over != "" {
			k.mu.Lock()
			k.over = over
			k.mu.Unlock()
			return true, nil
		}
		if err := s.count(p); err != nil {
			return true, err
		}
		if alone {
			k.told(p)
		}
	}
	if err := p.tree.Err(); err != nil {
		return false, fmt.Errorf("%w: %w", ErrNotDeterministic, err)
	}
	return more, nil
}

// told says how far the first part has come.
func (k *counting) told(p *part) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, l := *k.census, k.shortest
	p.into(&c, &l)
	k.so.counted(&c, l.breakage())
	k.progress.set(Sofar{Runs: c.Schedules, Depth: int64(max(k.deepest, p.deepest)), Share: p.tree.Share()})
}

// put takes a part back that was worked on.
func (k *counting) put(p *part, more bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.changed.Broadcast()
	p.working, p.done = false, true
	if err != nil {
		k.fail(err)
	}
	if more && err == nil {
		at := 0
		for k.parts[at] != p {
			at++
		}
		var rest []*part
		for _, t := range p.tree.Rest() {
			rest = append(rest, &part{tree: t})
		}
		k.parts = append(k.parts[:at+1:at+1], append(rest, k.parts[at+1:]...)...)
	}
	if k.cut != nil {
		return
	}
	for len(k.parts) > 0 && k.parts[0].done {
		first := k.parts[0]
		if k.census.Schedules+first.schedules > k.most {
			k.cut = first
			return
		}
		first.into(k.census, &k.shortest)
		k.deepest = max(k.deepest, first.deepest)
		k.parts[0], k.parts = nil, k.parts[1:]
	}
	if k.census.Schedules >= k.most && len(k.parts) > 0 {
		k.cut = k.parts[0]
	}
	k.so.counted(k.census, k.shortest.breakage())
	share := 1.0
	if len(k.parts) > 0 {
		next := k.parts[0].tree
		if b := k.parts[0].begin; b != nil { // the tree itself is being worked on
			next = b
		}
		share = next.Share()
	}
	k.progress.set(Sofar{Runs: k.census.Schedules, Depth: int64(k.deepest), Share: share})
}

// into adds what was counted to what came before it.
func (p *part) into(c *Census, shortest **leakage) {
	c.Schedules += p.schedules
	c.Leaking += p.leaking
	c.Worst = max(c.Worst, p.worst)
	if p.shortest != nil && (*shortest == nil || len(p.shortest.path) < len((*shortest).path)) {
		*shortest = p.shortest
	}
}

// result waits for the helpers, and completes what was counted.
func (k *counting) result(s *search) (*breakage, error) {
	k.mu.Lock()
	for k.helpers > 0 {
		k.changed.Wait()
	}
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	k.census.Complete = len(k.parts) == 0
	if left := k.most - k.census.Schedules; k.cut != nil && left > 0 {
		// Its beginning still counts.
		again := &part{tree: k.cut.begin}
		for more := true; more && again.schedules < left; more = again.tree.Next() {
			if err := s.count(again); err != nil {
				return nil, err
			}
		}
		again.into(k.census, &k.shortest)
	} else if k.cut == nil {
		for _, p := range k.parts { // it was ended early
			p.into(k.census, &k.shortest)
		}
	}
	return k.shortest.breakage(), nil
}

// count runs the schedule that the tree of a part is at.
func (s *search) count(p *part) error {
	if err := s.Begin(); err != nil {
		return errors.Join(err, s.End())
	}
	path := p.path[:0]
	var leak int64
	for {
		if p.next = s.Enabled(p.next[:0], false); len(p.next) == 0 {
			break
		}
		step := p.next[p.tree.Choose(len(p.next))]
		if err := s.Step(step); err != nil {
			return errors.Join(err, s.End())
		}
		path = append(path, step)
		now := s.Run.Truth.Leak()
		if now > 0 && leak == 0 && (p.shortest == nil || len(path) < len(p.shortest.path)) {
			detail := fmt.Sprintf("%s over the limit of %d", format.Units(now, "units"), s.cfg.Policy.Limit)
			p.shortest = &leakage{append([]engine.Choice(nil), path...), breach{Leak, detail, now}}
		}
		leak = max(leak, now)
	}
	if err := s.End(); err != nil {
		return err
	}
	p.path = path
	p.schedules++
	p.deepest = max(p.deepest, len(path))
	if leak > 0 {
		p.leaking++
		p.worst = max(p.worst, leak)
	}
	return nil
}
