package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// maxWindowEnds is how many ends of windows a series lists.
const maxWindowEnds = 1_000

// sampler takes the samples.
type sampler struct {
	d     *drive
	out   *results.Series
	every time.Duration
	err   error
}

func (s *sampler) run(ctx context.Context) {
	for !s.d.over && s.err == nil {
		if s.d.clock.Sleep(ctx, s.every) != nil {
			return
		}
		s.take()
		s.thin(MaxSamples)
	}
}

// thin takes every second sample out of a series of that many, and has half as many
// come from then on.
func (s *sampler) thin(most int) {
	if len(s.out.Samples) < most {
		return
	}
	kept := s.out.Samples[:0]
	for i, x := range s.out.Samples {
		if i%2 == 1 {
			kept = append(kept, x)
		}
	}
	clear(s.out.Samples[len(kept):])
	s.out.Samples = kept
	s.every = 2 * s.every
}

// take adds a sample. Readings happen at one instant and outside of all actors:
// they take no time and wait in no queue.
func (s *sampler) take() {
	d := s.d
	now := d.now()
	d.at(now)
	x := d.state(now)
	x.Usage, x.Fill = d.truth.inUse(now)
	var u stores.Usage
	u, s.err = s.d.st.count(context.Background())
	if s.err != nil {
		return
	}
	x.Keys = u.Keys
	x.KeysWithoutTTL = u.WithoutTTL
	x.Bytes = max(0, u.Bytes-s.d.st.empty)
	if s.d.st.Counts() {
		s.d.st.w.watching = false
		s.err = s.read(&x, now)
		s.d.st.w.watching = true
	}
	s.out.Samples = append(s.out.Samples, x)
	d.cfg.Live.show(d, x, true)
}

// state is a sample of the moment, without what is in use and what stores hold.
func (d *drive) state(now int64) results.Sample {
	return results.Sample{
		AtNS: now - d.epoch, Issued: d.issued, Admitted: d.counts.Admitted, Rejected: d.counts.Rejected, Errors: d.counts.Errors.Total(),
		InFlight: d.inFlight, Leak: d.truth.leak, FalseRejects: d.truth.falseRejects,
		Hits: append([]int64{}, d.hits[1:]...), Counters: []results.Counter{},
	}
}

func (s *sampler) read(x *results.Sample, now int64) error {
	how := s.d.st.howToRead(s.d)
	x.Counters = make([]results.Counter, len(s.out.Counters))
	fresh := make([]int64, len(s.out.Counters)) // readings behind the mean
	for _, tr := range s.d.truth.tracks {
		sub := &s.d.truth.subjects[tr.number]
		s.d.truth.touch(sub, now)
		if sub.crossed {
			continue // which window it was charged to is not known
		}
		want := s.d.truth.expected(sub, now)
		readings, err := s.d.st.Read(context.Background(), how, []harness.Subject{{Number: tr.number, Name: sub.name}})
		if err != nil {
			return fmt.Errorf("at %v: %w", time.Duration(x.AtNS), err)
		}
		for _, r := range readings {
			i := s.counter(r.Tier)
			for len(x.Counters) <= i {
				x.Counters = append(x.Counters, results.Counter{})
				fresh = append(fresh, 0)
			}
			fresh[i] += countReading(&x.Counters[i], r, want.Distance(r.Units), tr, now)
		}
	}
	for i := range x.Counters {
		if fresh[i] > 0 {
			x.Counters[i].MeanNS /= fresh[i]
		}
	}
	return nil
}

// countReading adds a reading to c, and returns 1 if the truth once was what it
// says.
func countReading(c *results.Counter, g harness.Reading, drift int64, tr *track, now int64) int64 {
	c.Readings++
	if !g.Known {
		c.Unknown++
		return 0
	}
	if drift == 0 {
		return 1
	}
	c.Drifting++
	c.Drift += drift
	c.Size += abs(drift)
	if abs(drift) > abs(c.Worst) {
		c.Worst = drift
	}
	ns, ok := tr.stale(g.Units, now)
	if !ok {
		c.Never++
		return 0
	}
	c.StalenessNS = max(c.StalenessNS, ns)
	c.MeanNS += ns
	return 1
}

func (s *sampler) counter(name string) int {
	if i := slices.Index(s.out.Counters, name); i >= 0 {
		return i
	}
	s.out.Counters = append(s.out.Counters, name)
	return len(s.out.Counters) - 1
}

// finish makes all samples equally wide.
func (s *sampler) finish() {
	s.out.Tiers = format.Strings(s.d.tiers[1:])
	for i := range s.out.Samples {
		x := &s.out.Samples[i]
		for len(x.Hits) < len(s.out.Tiers) {
			x.Hits = append(x.Hits, 0)
		}
		for len(x.Counters) < len(s.out.Counters) {
			x.Counters = append(x.Counters, results.Counter{})
		}
	}
	s.out.Tracked = len(s.d.truth.tracks)
	s.calendar()
}

// calendar notes when windows ended, and of calendar windows the date.
func (s *sampler) calendar() {
	w := s.d.policy.Window
	if !w.Kind.Tumbling() || len(s.out.Samples) == 0 {
		return
	}
	start := time.Unix(0, s.d.epoch).UTC()
	if !w.Kind.HasLength() {
		zone := cmp.Or(w.Location, time.UTC)
		s.out.Start, s.out.Zone = start.In(zone).Format(time.RFC3339Nano), zone.String()
	}
	last := start.Add(time.Duration(s.out.Samples[len(s.out.Samples)-1].AtNS))
	for span := w.At(start); !span.End.After(last); span = w.At(span.End) {
		if len(s.out.WindowEndsNS) == maxWindowEnds {
			s.out.WindowEndsNS = nil
			return
		}
		s.out.WindowEndsNS = append(s.out.WindowEndsNS, int64(span.End.Sub(start)))
	}
}

// every is the distance between two samples; 0 takes none.
func (p *pass) every() time.Duration {
	c := p.cfg
	length := c.Duration
	if length == 0 && p.info.Trace != nil && c.Stream.Speed() > 0 {
		length = time.Duration(float64(p.info.Trace.Span) / c.Stream.Speed())
	}
	if length == 0 && p.openLoop() && c.Requests > 0 {
		length = time.Duration(float64(c.Requests) / p.cfg.RateInForce() * float64(time.Second))
	}
	switch {
	case c.Every < 0:
		return 0
	case c.Every > 0:
		return c.Every
	case length > 0:
		return max(length/samples, time.Millisecond)
	default:
		return 0
	}
}
