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
	drive *drive
	out   *results.Series
	every time.Duration
	err   error
}

func (s *sampler) run(ctx context.Context) {
	for !s.drive.over && s.err == nil {
		if s.drive.clock.Sleep(ctx, s.every) != nil {
			return
		}
		s.take()
		s.thin(maxSamples)
	}
}

// thin takes every second sample out of a series of that many, and has half as many
// come from then on.
func (s *sampler) thin(most int) {
	if len(s.out.Samples) < most {
		return
	}
	kept := s.out.Samples[:0]
	for i, sample := range s.out.Samples {
		if i%2 == 1 {
			kept = append(kept, sample)
		}
	}
	clear(s.out.Samples[len(kept):])
	s.out.Samples = kept
	s.every = 2 * s.every
}

// take adds a sample. Readings happen at one instant and outside of all actors:
// they take no time and wait in no queue.
func (s *sampler) take() {
	drive := s.drive
	now := drive.now()
	drive.at(now)
	sample := drive.state(now)
	sample.Usage, sample.Fill = drive.truth.inUse(now)
	var usage stores.Usage
	usage, s.err = s.drive.site.count(context.Background())
	if s.err != nil {
		return
	}
	sample.Keys = usage.Keys
	sample.KeysWithoutTTL = usage.WithoutTTL
	sample.Bytes = max(0, usage.Bytes-s.drive.site.empty)
	if s.drive.site.Counts() {
		s.drive.site.network.watching = false
		s.err = s.read(&sample, now)
		s.drive.site.network.watching = true
	}
	s.out.Samples = append(s.out.Samples, sample)
	drive.cfg.Live.show(drive, sample, true)
}

// state is a sample of the moment, without what is in use and what stores hold.
func (d *drive) state(now int64) results.Sample {
	return results.Sample{
		AtNS: now - d.epoch, Issued: d.issued, Admitted: d.counts.Admitted, Rejected: d.counts.Rejected,
		Errors:   d.counts.Errors.Total(),
		InFlight: d.inFlight, Leak: d.truth.leak, FalseRejects: d.truth.falseRejects,
		Hits: append([]int64{}, d.hits[1:]...), Counters: []results.Counter{},
	}
}

func (s *sampler) read(sample *results.Sample, now int64) error {
	how := s.drive.site.howToRead(s.drive)
	sample.Counters = make([]results.Counter, len(s.out.Counters))
	fresh := make([]int64, len(s.out.Counters)) // readings behind the mean
	for _, track := range s.drive.truth.tracks {
		sub := &s.drive.truth.subjects[track.number]
		s.drive.truth.touch(sub, now)
		if sub.crossed {
			continue // which window it was charged to is not known
		}
		want := s.drive.truth.expected(sub, now)
		readings, err := s.drive.site.Read(context.Background(), how,
			[]harness.Subject{{Number: track.number, Name: sub.name}})
		if err != nil {
			return fmt.Errorf("at %v: %w", time.Duration(sample.AtNS), err)
		}
		for _, reading := range readings {
			i := s.counter(reading.Tier)
			for len(sample.Counters) <= i {
				sample.Counters = append(sample.Counters, results.Counter{})
				fresh = append(fresh, 0)
			}
			fresh[i] += countReading(&sample.Counters[i], reading, want.Distance(reading.Units), track, now)
		}
	}
	for i := range sample.Counters {
		if fresh[i] > 0 {
			sample.Counters[i].MeanNS /= fresh[i]
		}
	}
	return nil
}

// countReading adds a reading to counter, and returns 1 if the truth once was what it
// says.
func countReading(counter *results.Counter, reading harness.Reading, drift int64, tr *track, now int64) int64 {
	counter.Readings++
	if !reading.Known {
		counter.Unknown++
		return 0
	}
	if drift == 0 {
		return 1
	}
	counter.Drifting++
	counter.Drift += drift
	counter.Size += abs(drift)
	if abs(drift) > abs(counter.Worst) {
		counter.Worst = drift
	}
	ns, ok := tr.stale(reading.Units, now)
	if !ok {
		counter.Never++
		return 0
	}
	counter.StalenessNS = max(counter.StalenessNS, ns)
	counter.MeanNS += ns
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
	s.out.Tiers = format.Strings(s.drive.tiers[1:])
	for i := range s.out.Samples {
		sample := &s.out.Samples[i]
		for len(sample.Hits) < len(s.out.Tiers) {
			sample.Hits = append(sample.Hits, 0)
		}
		for len(sample.Counters) < len(s.out.Counters) {
			sample.Counters = append(sample.Counters, results.Counter{})
		}
	}
	s.out.Tracked = len(s.drive.truth.tracks)
	s.calendar()
}

// calendar notes when windows ended, and of calendar windows the date.
func (s *sampler) calendar() {
	window := s.drive.policy.Window
	if !window.Kind.Tumbling() || len(s.out.Samples) == 0 {
		return
	}
	start := time.Unix(0, s.drive.epoch).UTC()
	if !window.Kind.HasLength() {
		zone := cmp.Or(window.Location, time.UTC)
		s.out.Start, s.out.Zone = start.In(zone).Format(time.RFC3339Nano), zone.String()
	}
	last := start.Add(time.Duration(s.out.Samples[len(s.out.Samples)-1].AtNS))
	for span := window.At(start); !span.End.After(last); span = window.At(span.End) {
		if len(s.out.WindowEndsNS) == maxWindowEnds {
			s.out.WindowEndsNS = nil
			return
		}
		s.out.WindowEndsNS = append(s.out.WindowEndsNS, int64(span.End.Sub(start)))
	}
}

// every is the distance between two samples; 0 takes none.
func (p *pass) every() time.Duration {
	config := p.cfg
	length := config.Duration
	if length == 0 && p.info.Trace != nil && config.Stream.Speed() > 0 {
		length = time.Duration(float64(p.info.Trace.Span) / config.Stream.Speed())
	}
	if length == 0 && p.openLoop() && config.Requests > 0 {
		length = time.Duration(float64(config.Requests) / p.cfg.RateInForce() * float64(time.Second))
	}
	switch {
	case config.Every < 0:
		return 0
	case config.Every > 0:
		return config.Every
	case length > 0:
		return max(length/samples, time.Millisecond)
	default:
		return 0
	}
}
