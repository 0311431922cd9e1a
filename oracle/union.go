package oracle

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Source is the history of one of several processes that asked for the same subjects, by the clock of that process.
type Source struct {
	*File
	// Ahead is how far that clock was ahead of the one that all have in common, and Wrong by how much that may be wrong.
	Ahead, Wrong time.Duration
}

// part is a source in a union.
type part struct {
	Source
	shift int64 // nanoseconds from its epoch to the union's, by the common clock
	tiers []uint8
	first int // number of its first instance
}

// Union is the history of all sources, by the clock that they have in common. An event's call is as early, and its reply as
// late, as the clocks allow, so that a verdict is certain only if no clocks within their bounds explain it otherwise. The
// files are closed with the union. Histories of other strategies or limits are refused.
func Union(sources ...Source) (*File, error) {
	first := &sources[0]
	for i := range sources {
		o := &sources[i]
		if o.Header.Strategy != first.Header.Strategy || !sameLimits(o, first) {
			return nil, fmt.Errorf("%s and %s are not of one run, or had different windows", first.name, o.name)
		}
	}
	return joined(sources), nil
}

// sameLimits reports whether two sources were limited alike.
func sameLimits(x, y *Source) bool {
	p := x.agreed()
	q := y.agreed()
	a := &x.Header
	b := &y.Header
	return p.Real.Equal(q.Real) && p.Policy.Equal(q.Policy) && p.Speed == q.Speed && a.Policy.Limit == b.Policy.Limit &&
		a.Policy.Window.Kind == b.Policy.Window.Kind && a.Policy.Window.Length == b.Policy.Window.Length &&
		a.Policy.Window.Refill == b.Policy.Window.Refill && a.Policy.Window.Location.String() == b.Policy.Window.Location.String() &&
		slices.Equal(a.Changes, b.Changes)
}

// began is the source's epoch by the common clock, and agreed are its windows by that clock.
func (s *Source) began() time.Time { return s.Header.Epoch.Add(-s.Ahead) }

func (s *Source) agreed() quota.Timeline {
	t := s.Header.Policy.Window.Timeline
	if t != (quota.Timeline{}) {
		t.Real = t.Real.Add(-s.Ahead)
	}
	return t
}

func joined(all []Source) *File {
	name := fmt.Sprintf("the union of %d histories", len(all))
	out := &File{name: name, index: &index{groups: groupEvents, scatter: os.TempDir()}, want: everySubject}
	h := &out.Header
	*h = all[0].Header
	h.Tiers = nil
	h.Policy.Window.Timeline = all[0].agreed()
	h.Epoch = all[0].began()
	h.Initial = map[uint32]int64{}
	h.Names = map[uint32]string{}
	for i := range all {
		o := &all[i]
		if at := o.began(); at.Before(h.Epoch) {
			h.Epoch = at
		}
		for s, n := range o.Header.Initial { // who filled it knows if less was granted than all have asked for
			if known, ok := h.Initial[s]; !ok || n < known {
				h.Initial[s] = n
			}
		}
		maps.Copy(h.Names, o.Header.Names)
		out.Takes = out.Takes + o.Takes
		out.GiveBacks = out.GiveBacks + o.GiveBacks
	}
	instances := 0
	for i := range all {
		o := &all[i]
		p := part{Source: *o, shift: int64(o.began().Sub(h.Epoch)), first: instances}
		wrong := int64(o.Wrong)
		instances += o.instances
		for _, name := range o.Header.Tiers {
			if !slices.Contains(h.Tiers, name) {
				h.Tiers = append(h.Tiers, name)
			}
			p.tiers = append(p.tiers, uint8(slices.Index(h.Tiers, name)))
		}
		out.parts = append(out.parts, p)
		out.longest = max(out.longest, o.longest+2*wrong)
		out.index.merge(o.index, p.shift+wrong)
		o.index = nil // that of many parts takes more room than all else
	}
	out.index.each = out.each
	out.index.close()
	return out
}

// each visits the events of a part as the union has them.
func (p *part) each(want extent, visit func(*Event) error) error {
	early := p.shift - int64(p.Wrong)
	late := p.shift + int64(p.Wrong)
	return p.File.each(want, func(e *Event) error {
		o := *e
		o.Call += early
		o.Reply += late
		if o.TakeCall != 0 || o.TakeReply != 0 {
			o.TakeCall += early
			o.TakeReply += late
		}
		o.Instance = uint8(min(p.first+int(o.Instance), noInstance))
		if int(o.Tier) < len(p.tiers) {
			o.Tier = p.tiers[o.Tier]
		}
		return visit(&o)
	})
}

// merge adds what another index has counted. Its times are so much later here.
func (x *index) merge(o *index, later int64) {
	x.total += o.total
	x.until = max(x.until, o.until+later)
	for p := range o.places() {
		x.addAll(o.subject(p), uint32(o.events(p)))
	}
}

// scattered are the events of groups of subjects, each in a temporary file.
type scattered []*spill

// scatterTo writes the events of each group, which begins at one of the places, to a file of
// its own: then a long history is read twice, however many groups it has.
func (x *index) scatterTo(begins []int) (out scattered, err error) {
	writers := make([]frameWriter, len(begins))
	held := make([][]Event, len(begins))
	for range begins {
		f, err := os.CreateTemp(x.scatter, "history-*.part")
		if err != nil {
			return out, err
		}
		out = append(out, &spill{file: f, to: f, gone: removeOpen(f.Name()) == nil})
	}
	flush := func(i int) error {
		err := writers[i].events(out[i].to, &block{gives: held[i]})
		out[i].size = writers[i].written
		held[i] = held[i][:0]
		return err
	}
	err = x.each(everySubject, func(e *Event) error {
		p := x.at(e.Subject)
		i, found := slices.BinarySearch(begins, p)
		if !found {
			i--
		}
		held[i] = append(held[i], *e)
		if len(held[i]) == lastChunk {
			return flush(i)
		}
		return nil
	})
	for i := range held {
		if err == nil {
			err = flush(i)
		}
	}
	return out, err
}

func (s scattered) close() (err error) {
	for _, p := range s {
		err = errors.Join(err, p.file.Close())
		if !p.gone {
			err = errors.Join(err, os.Remove(p.file.Name()))
		}
	}
	return err
}
