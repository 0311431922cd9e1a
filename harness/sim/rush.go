package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/workloads"
)

// Rush adds arrivals for a while to those of an open loop: a month is mostly
// waiting, and what goes wrong at its end shows only if requests come then.
type Rush struct {
	Rate float64 // requests per second, on top of the others
	From time.Time
	For  time.Duration
}

// ParseRush reads "200@2026-02-28T23:59:30Z+1m".
func ParseRush(text string) (Rush, error) {
	bad := fmt.Errorf("%q is not of the form 200@2026-02-28T23:59:30Z+1m: requests per second, from when and for how long",
		text)
	rate, rest, ok := strings.Cut(text, "@")
	at := strings.LastIndex(rest, "+")
	if !ok || at < 0 {
		return Rush{}, bad
	}
	var rush Rush
	var errs [3]error
	rush.Rate, errs[0] = strconv.ParseFloat(rate, 64)
	rush.From, errs[1] = time.Parse(time.RFC3339, rest[:at])
	rush.For, errs[2] = time.ParseDuration(rest[at+1:])
	if errors.Join(errs[:]...) != nil || !(rush.Rate > 0 && rush.Rate <= bounds.MaxRate) || rush.For <= 0 ||
		rush.For > bounds.MaxVirtualDuration {
		return Rush{}, bad
	}
	return rush, nil
}

// String renders the rush as [ParseRush] reads it.
func (r Rush) String() string {
	return fmt.Sprintf("%g@%s+%v", r.Rate, r.From.UTC().Format(time.RFC3339Nano), r.For)
}

// mergedArrivals are several streams of arrivals as one.
type mergedArrivals struct {
	streams []workloads.Arrivals
	next    []time.Duration // of each stream; negative if it has ended
}

func mergeArrivals(streams ...workloads.Arrivals) *mergedArrivals {
	arrivals := &mergedArrivals{streams: streams, next: make([]time.Duration, len(streams))}
	for i := range streams {
		arrivals.fetch(i)
	}
	return arrivals
}

func (r *mergedArrivals) fetch(i int) {
	at, ok := r.streams[i].Next()
	r.next[i] = at
	if !ok {
		r.next[i] = -1
	}
}

// Next implements [workloads.Arrivals].
func (r *mergedArrivals) Next() (time.Duration, bool) {
	first := -1
	for i, at := range r.next {
		if at >= 0 && (first < 0 || at < r.next[first]) {
			first = i
		}
	}
	if first < 0 {
		return 0, false
	}
	at := r.next[first]
	r.fetch(first)
	return at, true
}

// burst is arrivals that begin later, and end.
type burst struct {
	workloads.Arrivals
	from, length time.Duration
}

// Next implements [workloads.Arrivals].
func (b burst) Next() (time.Duration, bool) {
	at, ok := b.Arrivals.Next()
	return b.from + at, ok && at < b.length
}

// rush adds the rushes of the configuration to the arrivals of its loop.
func (c *Config) rush(base workloads.Arrivals) (workloads.Arrivals, error) {
	if len(c.Rushes) == 0 {
		return base, nil
	}
	streams := []workloads.Arrivals{base}
	for i, rush := range c.Rushes {
		arrivals, err := workloads.Poisson(rush.Rate, seed.Stream(c.Seed, seed.Rush, uint64(i)))
		if err != nil {
			return nil, err
		}
		streams = append(streams, burst{arrivals, rush.From.Sub(c.Start), rush.For})
	}
	return mergeArrivals(streams...), nil
}
