package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/clock"
)

// overStates searches an engine that has states: first by the number of steps, whatever
// the preemptions, so that what is found is shortest; and if a bound ends that, by the
// number of preemptions, which reaches deep bugs that need few.
func (s *search) overStates(ctx context.Context, res *Result) error {
	w := &stateSearch{search: s, res: res}
	s.halves = s.bounds() > 0
	if err := w.walk(ctx, 0); err != nil {
		return err
	}
	s.halves = false
	if res.Capped != "" && s.goesOn(ctx) {
		if err := w.withFewPreemptions(ctx, s.bounds()); err != nil {
			return err
		}
	}
	return s.show(res, w.broken)
}

// stateSearch is a search over states.
type stateSearch struct {
	*search
	res    *Result
	broken []breakage
	graph  *graph
	// counts is set if preemptions are counted.
	counts bool
	// fused is set if no other actor comes between a command and its reply.
	fused   bool
	workers *workers
	sleep   *sleepSets // nil if all steps are tried
	// milder are properties that a schedule of the depth at hand has broken in which time
	// passes within a call, and what stands in broken for each: another schedule of that
	// depth may do with less.
	milder      map[Property]int
	preemptions int
	tally
}

// begin takes in the start.
func (w *stateSearch) begin() error {
	if err := w.Begin(); err != nil {
		return err
	}
	root, err := w.Engine.State()
	if err != nil {
		return err
	}
	if w.counts {
		root.Num(0)
	}
	w.graph = newGraph(root)
	w.tally = tally{}
	w.milder = map[Property]int{}
	w.sleep = w.newSleepSets()
	w.graph.add(0, 0, open{actor: -1, trail: w.trail()}, w.Enabled(nil, w.symmetric))
	return w.End()
}

// walk visits all states that can be reached with that many preemptions, and those with
// fewer before.
func (w *stateSearch) walk(ctx context.Context, most int) (err error) {
	if err := w.begin(); err != nil {
		return err
	}
	w.workers = w.newWorkers(ctx)
	defer func() { err = errors.Join(err, w.workers.end()) }()
	defer w.told(false)
	for w.preemptions = 0; w.preemptions <= most; w.preemptions++ {
		for depth := 0; w.preemptions < len(w.graph.levels) && depth < len(w.graph.levels[w.preemptions]); depth++ {
			err := w.level(ctx, depth)
			if len(w.wanted) == 0 && err == nil { // no bound keeps anything from being found
				w.capped = ""
			}
			if err != nil || w.over() {
				return err
			}
		}
	}
	return nil
}

// over reports whether nothing is left to look for, or a bound was met.
func (w *stateSearch) over() bool { return len(w.wanted)+len(w.milder) == 0 || w.capped != "" }

// checked are the properties that steps are checked against.
func (w *stateSearch) checked() map[Property]bool {
	if len(w.milder) == 0 {
		return w.wanted
	}
	all := maps.Clone(w.wanted)
	for property := range w.milder {
		all[property] = true
	}
	return all
}

// level tries all steps of the open states of one depth.
func (w *stateSearch) level(ctx context.Context, depth int) error {
	states := w.graph.at(w.preemptions, depth)
	if w.sleep != nil {
		w.sleep.nextDepth(w.graph, len(states))
	}
	var batch []edge
	for from, n := 0, 0; n < len(states); from = n {
		batch = batch[:0]
		for n < len(states) && (n == from || len(batch) < w.workers.batch(len(w.graph.nodes))) {
			for i := range states[n].next {
				if states[n].awake(i) || w.cfg.audit != nil {
					batch = append(batch, states[n].edge(n, i))
				}
			}
			n++
		}
		if err := w.try(ctx, batch, states[:n], from, depth); err != nil || w.over() {
			return err
		}
	}
	w.graph.levels[w.preemptions][depth] = nil
	clear(w.milder)
	return nil
}

// edge is a step that is tried.
type edge struct {
	open   *open
	at     int // place of the state among those of its depth
	number int // of the step among those of the state
	// known is set if the outcome is there already.
	known bool
	outcome
}

// edge is a step of a state at a place among those of its depth.
func (o *open) edge(at, number int) edge {
	e := edge{open: o, at: at, number: number}
	if len(o.ahead) > 0 {
		e.known = true
		e.outcome = o.ahead[0]
		e.ahead = o.ahead[1:]
	}
	return e
}

// outcome is what a step leads to.
type outcome struct {
	found []Finding
	hash  engine.Digest
	actor int32
	next  priced
	trail []engine.Digest
	// paused is for how long calls were held up.
	paused time.Duration
	foot   engine.Footprint
	// ahead is what further steps lead to, each of which is the only one of its state.
	ahead []outcome
	err   error
}

// try takes the steps of a batch, in whatever order, and takes in what they lead to in
// their own. They are those of the states from a place on.
func (w *stateSearch) try(ctx context.Context, batch []edge, states []open, state, depth int) error {
	begin := 0
	from := 0
	var broke error
	for at := range batch {
		if at == from {
			if broke != nil {
				return broke
			}
			w.capped = w.search.over(ctx)
			if w.capped != "" {
				return nil
			}
			begin = at
			from = min(len(batch), at+w.workers.batch(len(w.graph.nodes)))
			broke = w.workers.visit(w, batch[at:from])
		}
		if broke != nil && !w.workers.visited(at-begin) {
			return broke
		}
		edge := &batch[at]
		if edge.err != nil {
			return edge.err
		}
		for ; state < edge.at; state++ { // of which all steps are asleep
			w.expanded(states, state, depth)
		}
		if err := w.take(edge, depth); err != nil || w.capped != "" {
			w.left += edge.open.asleepBefore(edge.number)
			return err
		}
		if at == len(batch)-1 || batch[at+1].at != edge.at {
			w.expanded(states, state, depth)
			state++
			if w.over() {
				return nil
			}
		}
	}
	for ; broke == nil && state < len(states); state++ {
		w.expanded(states, state, depth)
	}
	return broke
}

// expanded lets go of the state at a place.
func (w *stateSearch) expanded(states []open, at, depth int) {
	if w.sleep != nil {
		w.left += w.sleep.propagate(w.graph, at, &states[at], w.graph.at(w.preemptions, depth+1))
	}
	w.graph.close(&states[at])
}

// take takes in what a step has led to.
func (w *stateSearch) take(e *edge, depth int) error {
	graph := w.graph
	choice := e.open.next[e.number]
	if !e.open.awake(e.number) {
		return w.cfg.audit(w, e)
	}
	w.runs++
	w.applied[graph.choices[choice].Fault()] = true
	w.depth = max(w.depth, depth+1)
	for _, finding := range e.found {
		w.takeFinding(e, finding)
	}
	_, old := graph.seen[e.hash]
	if old {
		w.pruned++
	} else {
		w.discover(e, depth+1)
	}
	if w.sleep != nil {
		w.sleep.learn(graph, e, int32(len(graph.at(w.preemptions, depth+1))-1), !old && len(e.next[0]) > 0)
	}
	switch {
	case w.cfg.First && len(w.broken) > 0 && len(w.wanted) > 0:
		w.capped = w.endAtFirst()
	default:
		w.capped = graph.full(&w.cfg)
	}
	w.told(true)
	return nil
}

// takeFinding takes in a property that a step has broken, if its schedule is the first or a milder one.
func (w *stateSearch) takeFinding(e *edge, finding Finding) {
	at, again := w.milder[finding.Property]
	switch {
	case finding.Property == declared:
		w.allow(&finding, w.res)
		return
	case w.wanted[finding.Property]:
		delete(w.wanted, finding.Property)
		at = len(w.broken)
		w.broken = append(w.broken, breakage{})
	case !again || e.paused >= w.broken[at].Paused:
		return
	}
	finding.Paused = e.paused
	if w.counts {
		preemptions := w.preemptions
		finding.Preemptions = &preemptions
	}
	last := w.graph.choices[e.open.next[e.number]]
	path := append(w.graph.pathTo(e.open.node, nil), last)
	w.broken[at] = breakage{finding, path}
	delete(w.milder, finding.Property)
	if e.paused > 0 {
		w.milder[finding.Property] = at
	}
}

// discover adds the state that a step has led to, which is new.
func (w *stateSearch) discover(e *edge, depth int) {
	graph := w.graph
	graph.seen[e.hash] = struct{}{}
	state := open{node: int32(len(graph.nodes)), actor: e.actor, trail: e.trail, paused: e.paused, ahead: e.ahead}
	graph.nodes = append(graph.nodes, node{parent: e.open.node, choice: e.open.next[e.number]})
	for more, next := range e.next {
		graph.add(w.preemptions+more, depth, state, next)
	}
}

// told says how far the walk has come.
func (w *stateSearch) told(waiting bool) {
	w.states = len(w.graph.nodes)
	sofar := Sofar{Runs: w.runs, States: int64(w.states), Depth: int64(w.depth), Counting: w.counts}
	if w.counts {
		sofar.Runs += w.res.Runs
		sofar.States += int64(w.res.States)
		sofar.Preemptions = int64(w.preemptions)
	} else {
		w.into(w.res)
	}
	if waiting {
		sofar.Waiting = w.graph.waiting
	}
	w.cfg.sofar.note(w.res, nil, w.broken)
	w.cfg.Progress.set(sofar)
}

// look looks at what a step, which was taken with an error, has led to. before is the actor that was in flight.
func (s *search) look(w *stateSearch, choice engine.Choice, before int32, err error) (o outcome) {
	o.err = err
	if err != nil {
		return o
	}
	o.found, o.err = s.check(w.checked())
	if o.err != nil {
		return o
	}
	o.paused = s.Run.Paused
	o.hash, o.err = s.Engine.State()
	if o.err != nil {
		return o
	}
	if w.sleep != nil {
		o.foot = s.Engine.(engine.Brancher).Footprint()
	}
	o.actor = -1
	if w.counts {
		o.actor = inFlight(s.World, choice, before)
		o.hash.Num(uint64(o.actor + 1))
	}
	if _, known := w.graph.seen[o.hash]; !known {
		o.trail = s.trail()
		o.next = priced{s.Enabled(nil, s.symmetric)}
		if w.counts {
			o.next = prices(s.World, o.actor, o.next[0], w.fused)
		}
	}
	return o
}

// Steps are taken after one in the same run from schedules of aheadFrom steps on, and at most mostAhead of them. Short
// schedules are soon run again, and what they have found is taken in before the limiter can hang in further steps.
const aheadFrom, mostAhead = 16, 256

// goAhead takes further steps in the run of one, as long as each is the only one of its state, and tells what they lead
// to. So a caller that asks again and again for a lock is not run from the start for each of its tries.
func (s *search) goAhead(w *stateSearch, last *outcome) (ahead []outcome) {
	brancher, ok := s.Engine.(engine.Brancher)
	for ok && len(ahead) < mostAhead {
		choice, only := last.next.only()
		if !only {
			break
		}
		went, err := brancher.Onward(choice)
		if !went && err == nil {
			break
		}
		next := s.look(w, choice, last.actor, err)
		if next.err != nil {
			break // it is tried in a run of its own, which tells whether that is so
		}
		ahead = append(ahead, next)
		last = &next
	}
	return ahead
}

// withFewPreemptions searches by the number of preemptions, for what has not been found.
func (w *stateSearch) withFewPreemptions(ctx context.Context, most int) error {
	w.counts = true
	w.fused = !w.repliesMatter()
	if err := w.walk(ctx, most); err != nil {
		return err
	}
	w.res.Bounded = w.bounded(w.preemptions - 1)
	w.res.Bounded.Whole = w.fused && w.res.Split
	return nil
}

// timeUp says that a part of the search has used up its time.
func (s *search) timeUp() string {
	passed := time.Duration(clock.Nano() - s.cfg.began)
	switch {
	case s.cfg.Timeout == 0:
		return ""
	case s.halves && passed >= s.cfg.Timeout/2:
		return fmt.Sprintf("half of its time of %v was up", s.cfg.Timeout)
	case passed >= s.cfg.Timeout:
		return fmt.Sprintf("its time of %v was up", s.cfg.Timeout)
	}
	return ""
}
