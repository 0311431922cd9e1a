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

// part is the history of one generator in a union.
type part struct {
	*File
	shift int64 // nanoseconds from its epoch to the union's, by the coordinator's clock
	wrong int64 // by how much that may be wrong
	tiers []uint8
	first int // number of its first instance
}

// Join is the union of the histories of all generators of a run, by the coordinator's clock.
// An event's call is as early, and its reply as late, as the clocks allow, so that a verdict is
// certain only if no clocks within their bounds explain it otherwise. The files are closed
// with the union. An error says which is missing, comes twice, or is of another run.
func (f *File) Join(others ...*File) (*File, error) {
	all := append([]*File{f}, others...)
	seen := map[string]string{}
	for _, o := range all {
		h := &o.Header
		switch {
		case h.Generator == "":
			return nil, fmt.Errorf("%s is of no generator", o.name)
		case seen[h.Generator] != "":
			return nil, fmt.Errorf("%s and %s are both of generator %s", seen[h.Generator], o.name, h.Generator)
		case h.RunID != f.Header.RunID || h.Strategy != f.Header.Strategy || !sameLimits(h, &f.Header):
			return nil, fmt.Errorf("%s and %s are not of one run, or had different windows", f.name, o.name)
		}
		seen[h.Generator] = o.name
	}
	for i := range all {
		if want := fmt.Sprintf("%d/%d", i+1, len(all)); seen[want] == "" {
			return nil, fmt.Errorf("there are %d histories, and none of them is of generator %s", len(all), want)
		}
	}
	return f.joined(all), nil
}

// sameLimits reports whether two parts were limited alike.
func sameLimits(a, b *Header) bool {
	p, q := agreed(a), agreed(b)
	return p.Real.Equal(q.Real) && p.Policy.Equal(q.Policy) && p.Speed == q.Speed && a.Policy.Limit == b.Policy.Limit &&
		a.Policy.Window.Kind == b.Policy.Window.Kind && a.Policy.Window.Length == b.Policy.Window.Length &&
		a.Policy.Window.Refill == b.Policy.Window.Refill && a.Policy.Window.Location.String() == b.Policy.Window.Location.String() &&
		slices.Equal(a.Changes, b.Changes)
}

// began is the epoch of a part by the coordinator's clock, and agreed are its windows by
// that clock.
func began(h *Header) time.Time { return h.Epoch.Add(-h.ClockAhead) }

func agreed(h *Header) quota.Timeline {
	t := h.Policy.Window.Timeline
	if t != (quota.Timeline{}) {
		t.Real = t.Real.Add(-h.ClockAhead)
	}
	return t
}

func (f *File) joined(all []*File) *File {
	name := fmt.Sprintf("the union of %d histories", len(all))
	out := &File{name: name, index: &index{groups: groupEvents, scatter: os.TempDir()}, want: everySubject}
	h := &out.Header
	*h = f.Header
	h.Generator, h.RunID = "", ""
	h.ClockAhead, h.Tiers = 0, nil
	h.Policy.Window.Timeline = agreed(&f.Header)
	h.Epoch = began(&f.Header)
	h.Initial, h.Names = map[uint32]int64{}, map[uint32]string{}
	for _, o := range all {
		if at := began(&o.Header); at.Before(h.Epoch) {
			h.Epoch = at
		}
		h.ClockWrong = max(h.ClockWrong, o.Header.ClockWrong)
		for s, n := range o.Header.Initial { // who filled it knows if less was granted than all have asked for
			if known, ok := h.Initial[s]; !ok || n < known {
				h.Initial[s] = n
			}
		}
		maps.Copy(h.Names, o.Header.Names)
		out.Takes, out.GiveBacks = out.Takes+o.Takes, out.GiveBacks+o.GiveBacks
	}
	instances := 0
	for _, o := range all {
		p := part{File: o, shift: int64(began(&o.Header).Sub(h.Epoch)), wrong: int64(o.Header.ClockWrong), first: instances}
		instances += o.instances
		for _, name := range o.Header.Tiers {
			if !slices.Contains(h.Tiers, name) {
				h.Tiers = append(h.Tiers, name)
			}
			p.tiers = append(p.tiers, uint8(slices.Index(h.Tiers, name)))
		}
		out.parts = append(out.parts, p)
		out.longest = max(out.longest, o.longest+2*p.wrong)
		out.index.merge(o.index, p.shift+p.wrong)
		o.index = nil // that of many parts takes more room than all else
	}
	out.index.each = out.each
	out.index.close()
	return out
}

// each visits the events of a part as the union has them.
func (p *part) each(want extent, visit func(*Event) error) error {
	return p.File.each(want, func(e *Event) error {
		o := *e
		o.Call, o.Reply = o.Call+p.shift-p.wrong, o.Reply+p.shift+p.wrong
		if o.TakeCall != 0 || o.TakeReply != 0 {
			o.TakeCall, o.TakeReply = o.TakeCall+p.shift-p.wrong, o.TakeReply+p.shift+p.wrong
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
	writers, held := make([]frameWriter, len(begins)), make([][]Event, len(begins))
	for range begins {
		f, err := os.CreateTemp(x.scatter, "history-*.part")
		if err != nil {
			return out, err
		}
		out = append(out, &spill{file: f, to: f, gone: removeOpen(f.Name()) == nil})
	}
	flush := func(i int) error {
		err := writers[i].events(out[i].to, &block{gives: held[i]})
		out[i].size, held[i] = writers[i].written, held[i][:0]
		return err
	}
	err = x.each(everySubject, func(e *Event) error {
		p := x.at(e.Subject)
		i, found := slices.BinarySearch(begins, p)
		if !found {
			i--
		}
		if held[i] = append(held[i], *e); len(held[i]) == lastChunk {
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
