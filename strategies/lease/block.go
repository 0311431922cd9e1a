package lease

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// block is units that Redis counts as used, and that this instance may still spend. Number 0
// is none.
type block struct {
	number, left int64
	size         int64     // what was left at first
	limit        int64     // under which it was drawn
	rest         int64     // units that Redis had left after the draw
	sent         time.Time // when the request for it was sent
}

// holding is what an instance has of an account in one window.
type holding struct {
	block
	window int64
	ends   time.Time
	key    string
	// scarce is set if Redis has too few units left for a block, or if the last draw failed: every
	// caller asks Redis itself until it has answered one.
	scarce bool
	// last is the answer to the last request that Redis rejected when no block was open: what it had left will
	// not become more in this window. lastLimit is the request's.
	last      reply
	lastLimit int64
	// busy is set by a caller that needed no new block, until the next round of the job.
	busy bool
	// turn is that of the caller who draws a block, for which others wait; nil if nobody does. waiting
	// are these, in their order.
	turn    quota.Event
	waiting []*waiter
	// next was drawn ahead, and wanted is set until the job has done so. old was spent before
	// the block, and is settled with the next draw of the job.
	next, old block
	wanted    bool
}

// waiter is a caller that waits for a turn. It is served from the new block before whoever comes later:
// the caller that drew the block would otherwise have spent it before the others wake up.
type waiter struct {
	units, limit int64
	served, gone bool
	remaining    int64
}

// fits reports whether the block has room for a request.
func (h *holding) fits(units, limit int64, now time.Time, valid time.Duration) bool {
	return h.limit == limit && h.left >= units && now.Sub(h.sent) < valid
}

// serve spends units for the callers that wait.
func (h *holding) serve(now time.Time, valid time.Duration) {
	for _, waiter := range h.waiting {
		if !waiter.gone && now.Before(h.ends) && h.fits(waiter.units, waiter.limit, now, valid) {
			h.left -= waiter.units
			waiter.served = true
			waiter.remaining = h.left + h.rest
			h.busy = true
		}
	}
}

// stale reports whether the time of a block is over.
func (h *holding) stale(now time.Time, valid time.Duration) bool {
	return slices.ContainsFunc([]block{h.old, h.block, h.next}, func(b block) bool {
		return b.number > 0 && now.Sub(b.sent) >= valid
	})
}

// debt of one of its blocks.
func (h *holding) debt(b block) debt {
	return debt{key: h.key, number: b.number, unused: b.left, ends: h.ends}
}

// owes notes a block that is settled later, if it is one.
func (s *lease) owes(d debt) {
	if d.number > 0 {
		s.owed = append(s.owed, d)
	}
}

// plan is what a request does: it was spent from a block, is rejected, waits for a turn, or asks Redis.
type plan struct {
	spent, rejected bool
	remaining       int64
	turn            quota.Event
	waiter          *waiter

	holding    *holding
	window     int64
	ends, sent time.Time
	key        string
	// draws is set if the caller draws a block, and old is the one that is settled with that.
	draws bool
	old   block
}

// plan spends a request from the block, or says what else there is to do.
func (s *lease) plan(req quota.Request, span *quota.Span, now time.Time, waited int) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	account := family.AccountOf(req.Policy, req.Subject)
	h := s.held[account]
	if h == nil {
		h = &holding{}
		s.held[account] = h
	}
	if h.turn == nil && (h.window != span.Index || !h.ends.Equal(span.End)) { // a block ends with its window
		*h = holding{window: span.Index, ends: span.End}
	}
	p := plan{holding: h, window: span.Index, ends: span.End}
	current := h.window == span.Index && h.ends.Equal(span.End)
	fits := func() bool { return current && h.fits(req.Units, req.Policy.Limit, now, s.valid) }
	if h.next.number > 0 && !fits() {
		s.owes(h.debt(h.old))
		h.old = h.block
		h.block = h.next
		h.next = block{}
	}
	switch {
	case fits():
		h.left -= req.Units
		h.busy = true
		if !h.wanted && !h.scarce && h.next.number == 0 && float64(h.left) < s.prefetch*float64(h.size) {
			h.wanted = true
			s.wake(jobPrefetch)
		}
		p.spent = true
		p.remaining = h.left + h.rest
	case current && h.last.verdict == final && h.lastLimit == req.Policy.Limit && h.last.left < req.Units:
		p.rejected = true
		p.remaining = max(0, h.last.left)
	case h.turn != nil && current && waited < turns && !h.scarce && req.Units < s.block:
		p.turn = h.turn
		p.waiter = &waiter{units: req.Units, limit: req.Policy.Limit}
		h.waiting = append(h.waiting, p.waiter)
	case h.turn != nil || h.scarce || req.Units >= s.block: // no block would have room for it
		h.busy = true
	default:
		h.turn = s.clock.NewEvent()
		p.draws = true
		p.old = h.block
		h.block = block{}
	}
	return p
}

// answered takes in what a request to Redis has led to. After an error nobody knows whether the
// old block was settled: it is not spent any more, and is settled again by its number.
func (s *lease) answered(p plan, limit int64, r reply, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	holding := p.holding
	if err != nil {
		s.owes(debt{key: p.key, number: p.old.number, unused: p.old.left, ends: p.ends})
	}
	if err == nil && holding.window == p.window {
		holding.scarce = s.part(r.left) < least
		if r.verdict == final {
			holding.last = r
			holding.lastLimit = limit
		}
	}
	if !p.draws {
		return
	}
	holding.scarce = holding.scarce || err != nil
	if r.number > 0 {
		holding.block = r.block(limit, p.sent)
		holding.key = p.key
		holding.scarce = false
		holding.serve(s.clock.Now(), s.valid)
	}
	holding.turn.Set()
	holding.turn = nil
	holding.waiting = nil
}

// served ends a wait, and reports whether the caller was served.
func (s *lease) served(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gone = true
	return w.served
}

// block is the new one.
func (r reply) block(limit int64, sent time.Time) block {
	return block{number: r.number, left: r.units, size: r.units, limit: limit, rest: r.left, sent: sent}
}

// part is the largest block that may be drawn if so many units are left.
func (s *lease) part(left int64) int64 {
	return min(s.block, int64(math.Floor(float64(left)*s.share/float64(s.instances))))
}

// holds is how many units the instance holds.
func (s *lease) holds(account family.Account, window int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holding := s.held[account]; holding != nil && holding.window == window {
		return holding.old.left + holding.left + holding.next.left
	}
	return 0
}

// portion is what an instance holds of an account in a window.
type portion func(account family.Account, window int64) int64

// heldBy is what all instances but one hold; -1 leaves out none.
func (s *lease) heldBy(without int, account family.Account, window int64) int64 {
	return s.peers.Sum(without, func(of portion) int64 { return of(account, window) })
}

// The names of jobs.
const jobGiveBack, jobPrefetch = "give-back", "prefetch"

// debt is a block that Redis has to be told about, with the units that were not spent.
type debt struct {
	key            string
	number, unused int64
	ends           time.Time // of its window
}

// Jobs implements [strategies.Jobber].
func (s *lease) Jobs() []strategies.Job {
	jobs := []strategies.Job{{Name: jobGiveBack, Every: s.every, Run: s.giveBack}}
	if s.prefetch > 0 {
		jobs = append(jobs, strategies.Job{Name: jobPrefetch, Run: s.fetch})
	}
	return jobs
}

// fetch draws the blocks that are wanted, in the order of their keys.
func (s *lease) fetch(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	var wanted []*holding
	was := map[*holding]holding{}
	for _, holding := range s.held {
		holding.wanted = holding.wanted && holding.turn == nil && holding.number > 0
		if holding.wanted {
			wanted = append(wanted, holding)
			was[holding] = *holding
		}
	}
	s.mu.Unlock()
	slices.SortFunc(wanted, func(a, b *holding) int { return cmp.Compare(was[a].key, was[b].key) })
	for _, holding := range wanted {
		of := was[holding]
		sent := s.clock.Now()
		r := reply{}
		if err == nil {
			r, err = s.run(ctx, of.key, charge{limit: of.limit, draws: true}, of.debt(of.old))
		}
		changed = changed || r.number > 0
		s.mu.Lock()
		if holding.window == of.window {
			holding.wanted = false
			holding.old = block{}
			if err == nil {
				holding.next = r.block(of.limit, sent)
				holding.scarce = r.number == 0
			}
		}
		if err != nil {
			s.owes(of.debt(of.old))
		}
		s.mu.Unlock()
	}
	return changed, err
}

// giveBack settles blocks that nobody has spent from since the last round, and those whose
// time is over. It forgets subjects whose window has ended.
func (s *lease) giveBack(ctx context.Context) (changed bool, err error) {
	debts, busy := s.idle(false)
	settled, err := s.settle(ctx, debts)
	return busy || settled, err
}

// idle takes out the blocks that are settled next, in the order of their keys. busy reports
// whether others may be idle in the next round. all takes out every block.
func (s *lease) idle(all bool) (debts []debt, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	debts = s.owed
	s.owed = nil
	for account, holding := range s.held {
		switch over := !now.Before(holding.ends); {
		case holding.turn != nil || holding.wanted && !all:
			continue
		case !all && !over && holding.busy && !holding.stale(now, s.valid):
			holding.busy = false
			busy = true
			continue
		}
		for _, b := range []block{holding.old, holding.block, holding.next} {
			if b.number > 0 {
				debts = append(debts, holding.debt(b))
			}
		}
		delete(s.held, account)
	}
	debts = slices.DeleteFunc(debts, func(d debt) bool { return !now.Before(d.ends) })
	slices.SortFunc(debts, func(a, b debt) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	})
	return debts, busy
}

// settle tells Redis about blocks. What fails, and what comes after that, stays owed.
func (s *lease) settle(ctx context.Context, debts []debt) (changed bool, err error) {
	done := 0
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.owed = append(s.owed, debts[done:]...)
	}()
	for ; done < len(debts); done++ {
		if _, err := s.run(ctx, debts[done].key, charge{}, debts[done]); err != nil {
			return done > 0, fmt.Errorf("give back %d blocks: %w", len(debts)-done, err)
		}
	}
	return done > 0, nil
}

// Close implements [strategies.Strategy]: what is held goes back.
func (s *lease) Close(ctx context.Context) error {
	debts, _ := s.idle(true)
	_, err := s.settle(ctx, debts)
	return err
}
