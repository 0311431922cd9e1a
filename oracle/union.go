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

// Union is the history of all sources, by the clock that they have in common. An event's call is as early, and its
// reply as late, as the clocks allow, so that a verdict is certain only if no clocks within their bounds explain it
// otherwise. The files are closed with the union. Histories of other strategies or limits are refused.
func Union(sources ...Source) (*File, error) {
	first := &sources[0]
	for i := range sources {
		source := &sources[i]
		if source.Header.Strategy != first.Header.Strategy || !sameLimits(source, first) {
			return nil, fmt.Errorf("%s and %s are not of one run, or had different windows", first.name, source.name)
		}
	}
	return joined(sources), nil
}

// sameLimits reports whether two sources were limited alike.
func sameLimits(x, y *Source) bool {
	timeline := x.agreed()
	q := y.agreed()
	header := &x.Header
	b := &y.Header
	return timeline.Real.Equal(q.Real) && timeline.Policy.Equal(q.Policy) && timeline.Speed == q.Speed &&
		header.Policy.Limit == b.Policy.Limit &&
		header.Policy.Window.Kind == b.Policy.Window.Kind && header.Policy.Window.Length == b.Policy.Window.Length &&
		header.Policy.Window.Refill == b.Policy.Window.Refill &&
		header.Policy.Window.Location.String() == b.Policy.Window.Location.String() &&
		slices.Equal(header.Changes, b.Changes)
}

// began is the source's epoch by the common clock, and agreed are its windows by that clock.
func (s *Source) began() time.Time { return s.Header.Epoch.Add(-s.Ahead) }

func (s *Source) agreed() quota.Timeline {
	timeline := s.Header.Policy.Window.Timeline
	if timeline != (quota.Timeline{}) {
		timeline.Real = timeline.Real.Add(-s.Ahead)
	}
	return timeline
}

func joined(all []Source) *File {
	name := fmt.Sprintf("the union of %d histories", len(all))
	out := &File{name: name, index: &index{groups: groupEvents, scatter: os.TempDir()}, want: everySubject}
	header := &out.Header
	*header = all[0].Header
	header.Tiers = nil
	header.Policy.Window.Timeline = all[0].agreed()
	header.Epoch = all[0].began()
	header.Initial = map[uint32]int64{}
	header.Names = map[uint32]string{}
	for i := range all {
		source := &all[i]
		if at := source.began(); at.Before(header.Epoch) {
			header.Epoch = at
		}
		for s, n := range source.Header.Initial { // who filled it knows if less was granted than all have asked for
			if known, ok := header.Initial[s]; !ok || n < known {
				header.Initial[s] = n
			}
		}
		maps.Copy(header.Names, source.Header.Names)
		out.Takes = out.Takes + source.Takes
		out.GiveBacks = out.GiveBacks + source.GiveBacks
	}
	instances := 0
	for i := range all {
		source := &all[i]
		p := part{Source: *source, shift: int64(source.began().Sub(header.Epoch)), first: instances}
		wrong := int64(source.Wrong)
		instances += source.instances
		for _, name := range source.Header.Tiers {
			if !slices.Contains(header.Tiers, name) {
				header.Tiers = append(header.Tiers, name)
			}
			p.tiers = append(p.tiers, uint8(slices.Index(header.Tiers, name)))
		}
		out.parts = append(out.parts, p)
		out.longest = max(out.longest, source.longest+2*wrong)
		out.index.merge(source.index, p.shift+wrong)
		source.index = nil // that of many parts takes more room than all else
	}
	out.index.each = out.each
	out.index.close()
	return out
}

// each visits the events of a part as the union has them.
func (p *part) each(want extent, visit func(*Event) error) error {
	early := p.shift - int64(p.Wrong)
	late := p.shift + int64(p.Wrong)
	return p.File.each(want, func(event *Event) error {
		o := *event
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
		file, err := os.CreateTemp(x.scatter, "history-*.part")
		if err != nil {
			return out, err
		}
		out = append(out, &spill{file: file, to: file, gone: removeOpen(file.Name()) == nil})
	}
	flush := func(i int) error {
		err := writers[i].events(out[i].to, &block{gives: held[i]})
		out[i].size = writers[i].written
		held[i] = held[i][:0]
		return err
	}
	err = x.each(everySubject, func(event *Event) error {
		p := x.at(event.Subject)
		i, found := slices.BinarySearch(begins, p)
		if !found {
			i--
		}
		held[i] = append(held[i], *event)
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
	for _, spill := range s {
		err = errors.Join(err, spill.file.Close())
		if !spill.gone {
			err = errors.Join(err, os.Remove(spill.file.Name()))
		}
	}
	return err
}
