package oracle_test

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

type kind uint8

const (
	begin   kind = iota // a window begins
	change              // the limit changes
	admit               // a request is admitted
	reject              // a request is rejected
	perhaps             // a request failed: it takes units if there is room, or its effect comes too late to matter
	give                // units come back, or a commit used more than it had reserved
)

const (
	before = math.MinInt64     // the window before all others
	never  = math.MaxInt64 / 2 // until when the effect of a failed operation may come: it has no end
)

// operation is what porcupine orders. It takes effect in the windows first to last; later it changes nothing.
type operation struct {
	kind         kind
	call, reply  int64 // nanoseconds since the epoch
	from, to     int64 // where the search puts it
	first, last  int64
	units, short int64 // short are units that were asked for and not granted
	limit        int64 // with which the part begins; -1 if a window begins within it
	until        int64 // what ends later joins windows
	steady       bool  // it lies in one window
	unknown      bool  // it gives back what either of two windows holds
	chain, place uint32
	after        *operation // the request whose units come back, if it is known
	at           *operation // itself, if units come back at the moment of its answer
}

// class holds operations of which one is as good as the other.
type class struct {
	kind               kind
	units, short, last int64
	at                 *operation
}

// part is one subject-window, or several that are joined by requests which may belong to either.
type part struct {
	list []*operation
	why  string // it cannot be decided
}

// isNext reports whether the operations of its chain before it took effect, and the request that it is about.
func (o *operation) isNext(done string) bool {
	return length(done, o.chain) == o.place && (o.after == nil || length(done, o.after.chain) > o.after.place)
}

// length is how many operations of a chain took effect.
func length(done string, chain uint32) uint32 {
	if at := 4 * int(chain); len(done) >= at+4 {
		return binary.BigEndian.Uint32([]byte(done[at : at+4]))
	}
	return 0
}

// follow adds the operation to those of its chain.
func (o *operation) follow(done string) string {
	at := 4 * int(o.chain)
	b := append([]byte(done), make([]byte, max(0, at+4-len(done)))...)
	binary.BigEndian.PutUint32(b[at:], o.place+1)
	return string(b)
}

// splitter turns the events of one subject into operations.
type splitter struct {
	*oracle.Config
	named bool // a give-back always says which take it is about
	list  []*operation
	open  map[[2]int64][]*operation // admitted, by call and reply, unless a give-back is about them
}

// split returns the parts of a subject's history. The events are ordered by call.
func split(cfg *oracle.Config, events []oracle.Event) []part {
	s := splitter{Config: cfg, open: map[[2]int64][]*operation{},
		named: slices.ContainsFunc(events, func(e oracle.Event) bool {
			return e.Kind == oracle.Take && e.Outcome == oracle.Admitted && e.Call == 0 && e.Reply == 0
		})}
	for i := range events {
		if e := &events[i]; e.Kind == oracle.Take {
			s.take(e)
		} else {
			s.give(e)
		}
	}
	for _, c := range cfg.Changes {
		s.list = append(s.list, &operation{kind: change, call: c.From, reply: c.To, until: c.To,
			first: s.at(c.From).Index, last: math.MaxInt64, units: c.Limit})
	}
	slices.SortStableFunc(s.list, func(a, b *operation) int { return cmp.Compare(a.call, b.call) })
	return s.parts(events[0].Subject)
}

func (s *splitter) at(t int64) quota.Span { return s.Window.At(s.Epoch.Add(time.Duration(t))) }

// take enters a request. One that failed is charged, if at all, to a window in which it was under way.
func (s *splitter) take(e *oracle.Event) {
	o := &operation{kind: reject, call: e.Call, reply: e.Reply, until: e.Reply, first: s.at(e.Call).Index,
		last: math.MaxInt64, units: e.Units}
	switch e.Outcome {
	case oracle.Admitted:
		at := [2]int64{e.Call, e.Reply}
		o.kind, s.open[at] = admit, append(s.open[at], o)
	case oracle.Failed:
		o.kind, o.reply, o.last = perhaps, never, s.at(e.Reply).Index
	case oracle.Elsewhere:
		return
	case oracle.Short:
		for i := len(s.list) - 1; i >= 0 && s.list[i].call == e.Call; i-- {
			if a := s.list[i]; a.kind == admit && a.reply == e.Reply && a.short == 0 {
				a.short = e.Units
				return
			}
		}
		o.units = min(1, e.Units)
	}
	s.list = append(s.list, o)
}

// give enters what comes back to the window of its take, while that lasts. Whether the store gave it back is open if
// that failed, or if the holder has only gone.
func (s *splitter) give(e *oracle.Event) {
	o := &operation{kind: give, call: e.Call, reply: e.Reply, first: s.at(e.Call).Index, units: e.Units}
	o.last = o.first
	if s.named || e.TakeCall != 0 || e.TakeReply != 0 {
		home := s.at(e.TakeReply).Index
		if home < o.first {
			return
		}
		o.unknown = s.at(e.TakeCall).Index != home
		o.call = max(e.Call, e.TakeReply)
		o.first = home
		o.last = home
		o.reply = max(e.Reply, o.call)
		s.settle(o, e)
	} else {
		o.reply = never
	}
	if e.Outcome == oracle.Failed || e.Kind == oracle.Expire {
		o.reply = never
	}
	o.until = o.call
	s.list = append(s.list, o)
}

// settle finds the request that a give-back is about.
func (s *splitter) settle(o *operation, e *oracle.Event) {
	at := [2]int64{e.TakeCall, e.TakeReply}
	i := slices.IndexFunc(s.open[at], func(a *operation) bool { return a.units >= e.Units })
	if i < 0 {
		return
	}
	o.after = s.open[at][i]
	if o.call == o.after.reply {
		o.after.at = o.after
	}
	s.open[at] = slices.Delete(s.open[at], i, i+1)
}

// parts cuts the operations where a window ends that no operation goes beyond.
func (s *splitter) parts(subject uint32) (out []part) {
	var end time.Time
	windows := map[int64]bool{} // that begin within the part at hand
	for _, o := range s.list {
		w := s.at(o.call)
		last := s.at(o.until)
		o.steady = w.Index == last.Index
		if len(out) == 0 || !w.Start.Before(end) && s.Window.Kind != quota.Standing {
			first := s.begin(w, subject)
			first.call, first.reply, first.limit = o.call, o.call, s.Limit
			for _, c := range s.Changes {
				if s.at(c.To).Index < w.Index {
					first.limit = c.Limit
				}
			}
			out = append(out, part{list: []*operation{first}})
			end = w.End
			clear(windows)
		}
		p := &out[len(out)-1]
		p.list = append(p.list, o)
		if o.unknown {
			p.why = "a request that crossed the boundary of a window gave units back"
		}
		if last.End.After(end) {
			end = last.End
		}
		for _, i := range []int64{w.Index, w.Index + 1, last.Index, last.Index + 1} {
			if i > p.list[0].last && !windows[i] && s.Window.Kind != quota.Standing {
				windows[i] = true
				p.list = append(p.list, s.begin(s.Window.Span(i), subject))
			}
		}
	}
	return slices.DeleteFunc(out, func(p part) bool { return !p.has(admit) && !p.has(reject) && !p.has(perhaps) })
}

// begin resets the counter. It is called and answered at once.
func (s *splitter) begin(w quota.Span, subject uint32) *operation {
	o := &operation{kind: begin, call: int64(w.Start.Sub(s.Epoch)), last: w.Index, limit: -1}
	o.reply = o.call
	if w.Contains(s.Epoch) && s.Initial != nil {
		o.units = s.Initial(subject)
	}
	return o
}

// narrow leaves out orders that are no better than others. If requests may be rejected at any time, it is best to take
// late and to give back early. If units never come back, it is best to take early and to reject late. The whole
// interval is left if the limit changes, if a commit used more than was reserved, or if there are two windows to choose
// from.
func (o *operation) narrow(exact, grows, whole bool) {
	o.from = o.call
	o.to = o.reply
	switch {
	case !o.steady || whole:
	case !exact && o.kind == admit, grows && o.kind == reject:
		o.from = o.reply
	case !exact && o.kind == give, grows && o.kind == admit && o.short == 0:
		o.to = o.call
	}
}

// operations are what porcupine orders. Of two operations of a class, the one that can begin and must end first comes
// first: they form chains.
func (p *part) operations(exact bool) (out []porcupine.Operation) {
	grows := !p.has(give)
	whole := slices.ContainsFunc(p.list, func(o *operation) bool {
		return o.kind == change || o.kind == give && o.units < 0
	})
	var list []*operation
	for _, o := range p.list {
		if exact || o.kind != reject && o.kind != perhaps { // a counter that rejects at any time does not need these
			o.narrow(exact, grows, whole)
			list = append(list, o)
		}
	}
	slices.SortStableFunc(list, func(a, b *operation) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	type chain struct {
		number, length uint32
		end            int64
	}
	chains := map[class][]*chain{}
	n := uint32(0)
	for _, o := range list {
		k := class{o.kind, o.units, o.short, o.last, o.at}
		if o.kind == begin || o.kind == change { // these have an order of their own
			k = class{kind: o.kind}
		}
		var best *chain
		for _, c := range chains[k] {
			if c.end <= o.to && (best == nil || c.end > best.end) {
				best = c
			}
		}
		if best == nil {
			best = &chain{number: n}
			chains[k] = append(chains[k], best)
			n = n + 1
		}
		o.chain = best.number
		o.place = best.length
		best.length = best.length + 1
		best.end = o.to
		out = append(out, porcupine.Operation{Input: o, Call: o.from, Return: o.to})
	}
	return out
}

func (p *part) has(k kind) bool {
	return slices.ContainsFunc(p.list, func(o *operation) bool { return o.kind == k })
}
