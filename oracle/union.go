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
func sameLimits(a, b *Source) bool {
	first := &a.Header
	second := &b.Header
	return sameTimeline(a.timeline(), b.timeline()) &&
		first.Policy.Limit == second.Policy.Limit &&
		sameWindow(&first.Policy.Window, &second.Policy.Window) &&
		slices.Equal(first.Changes, second.Changes)
}

func sameTimeline(a, b quota.Timeline) bool {
	return a.Real.Equal(b.Real) && a.Policy.Equal(b.Policy) && a.Speed == b.Speed
}

func sameWindow(a, b *quota.Window) bool {
	return a.Kind == b.Kind && a.Length == b.Length && a.Refill == b.Refill &&
		a.Location.String() == b.Location.String()
}

// began is the source's epoch by the common clock.
func (s *Source) began() time.Time { return s.Header.Epoch.Add(-s.Ahead) }

// timeline is the source's policy time by the common clock.
func (s *Source) timeline() quota.Timeline {
	timeline := s.Header.Policy.Window.Timeline
	if timeline != (quota.Timeline{}) {
		timeline.Real = timeline.Real.Add(-s.Ahead)
	}
	return timeline
}

// joined makes the union of sources that were limited alike.
func joined(sources []Source) *File {
	union := &File{
		name:   fmt.Sprintf("the union of %d histories", len(sources)),
		index:  &index{groups: groupEvents, scatter: os.TempDir()},
		want:   everySubject,
		Header: joinedHeader(sources),
	}
	for i := range sources {
		union.join(&sources[i])
	}
	union.index.each = union.each
	union.index.close()
	return union
}

// joinedHeader is the header of a union, still without tiers.
func joinedHeader(sources []Source) Header {
	first := &sources[0]
	header := first.Header
	header.Tiers = nil
	header.Policy.Window.Timeline = first.timeline()
	header.Epoch = first.began()
	header.Initial = map[uint32]int64{}
	header.Names = map[uint32]string{}
	for i := range sources {
		source := &sources[i]
		if began := source.began(); began.Before(header.Epoch) {
			header.Epoch = began
		}
		// The process that filled a subject knows best how many units it was granted:
		// that may be less than all have asked for.
		for subject, units := range source.Header.Initial {
			if known, is := header.Initial[subject]; !is || units < known {
				header.Initial[subject] = units
			}
		}
		maps.Copy(header.Names, source.Header.Names)
	}
	return header
}

// join adds a source to a union whose epoch is known.
func (f *File) join(source *Source) {
	wrong := int64(source.Wrong)
	joining := part{
		Source: *source,
		shift:  int64(source.began().Sub(f.Header.Epoch)),
		first:  f.instances,
	}
	for _, name := range source.Header.Tiers {
		if !slices.Contains(f.Header.Tiers, name) {
			f.Header.Tiers = append(f.Header.Tiers, name)
		}
		joining.tiers = append(joining.tiers, uint8(slices.Index(f.Header.Tiers, name)))
	}
	f.parts = append(f.parts, joining)
	f.Takes += source.Takes
	f.GiveBacks += source.GiveBacks
	f.instances += source.instances
	f.longest = max(f.longest, source.longest+2*wrong)
	f.index.merge(source.index, joining.shift+wrong)
	source.index = nil // the indexes of many parts take more room than all else
}

// each visits the events of a part as the union has them.
func (p *part) each(want extent, visit func(*Event) error) error {
	early := p.shift - int64(p.Wrong)
	late := p.shift + int64(p.Wrong)
	return p.File.each(want, func(event *Event) error {
		moved := *event
		moved.Call += early
		moved.Reply += late
		if moved.TakeCall != 0 || moved.TakeReply != 0 {
			moved.TakeCall += early
			moved.TakeReply += late
		}
		moved.Instance = uint8(min(p.first+int(moved.Instance), noInstance))
		if int(moved.Tier) < len(p.tiers) {
			moved.Tier = p.tiers[moved.Tier]
		}
		return visit(&moved)
	})
}

// merge adds the counts of another index. Its times are so much later here.
func (x *index) merge(other *index, later int64) {
	x.total += other.total
	x.until = max(x.until, other.until+later)
	for place := range other.places() {
		x.addAll(other.subject(place), uint32(other.events(place)))
	}
}

// scattered are the events of groups of subjects, each in a temporary file.
type scattered []*spill

// scatterTo writes the events of each group, which begins at one of the places, to a
// file of its own: then a long history is read twice, however many groups it has.
func (x *index) scatterTo(begins []int) (groups scattered, err error) {
	groups, err = newScattered(x.scatter, len(begins))
	if err != nil {
		return groups, err
	}
	writers := make([]groupWriter, len(begins))
	for i := range writers {
		writers[i].file = groups[i]
	}
	err = x.each(everySubject, func(event *Event) error {
		place := x.at(event.Subject)
		group, found := slices.BinarySearch(begins, place)
		if !found {
			group--
		}
		return writers[group].add(event)
	})
	for i := range writers {
		if err == nil {
			err = writers[i].flush()
		}
	}
	return groups, err
}

// newScattered makes the files. If there is an error, it returns those made so far.
func newScattered(dir string, files int) (groups scattered, err error) {
	for range files {
		file, err := os.CreateTemp(dir, "history-*.part")
		if err != nil {
			return groups, err
		}
		gone := removeOpen(file.Name()) == nil
		groups = append(groups, &spill{file: file, to: file, gone: gone})
	}
	return groups, nil
}

// groupWriter writes the events of one group, many at a time.
type groupWriter struct {
	file   *spill
	writer frameWriter
	held   []Event // not written yet
}

func (g *groupWriter) add(event *Event) error {
	g.held = append(g.held, *event)
	if len(g.held) == lastChunk {
		return g.flush()
	}
	return nil
}

func (g *groupWriter) flush() error {
	err := g.writer.events(g.file.to, &block{gives: g.held})
	g.file.size = g.writer.written
	g.held = g.held[:0]
	return err
}

func (s scattered) close() (err error) {
	for _, group := range s {
		err = errors.Join(err, group.file.Close())
		if !group.gone {
			err = errors.Join(err, os.Remove(group.file.Name()))
		}
	}
	return err
}
