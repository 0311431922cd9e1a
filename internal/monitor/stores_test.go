package monitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/stores"
)

// showing is a store of which is planted what it shows.
type showing struct {
	stores.Store
	shows func() (stores.Sign, error)
}

func (showing) Mark(context.Context, stores.Scope) error                    { return nil }
func (s showing) Marked(context.Context, stores.Scope) (stores.Sign, error) { return s.shows() }
func (showing) Unmark(context.Context, stores.Scope) error                  { return nil }

// TestSpans: what happens to a store happened between the last look before it and the first one after it, or the end of
// the pass. A store is looked at every 0.1 s of a pass of 0.65 s.
func TestSpans(t *testing.T) {
	const first, second = 250 * time.Millisecond, 450 * time.Millisecond
	steps := func(at time.Duration, before, between, after int64) int64 {
		switch {
		case at > second:
			return after
		case at > first:
			return between
		}
		return before
	}
	for _, c := range []struct {
		name  string
		shows func(at time.Duration, m *stores.Meter) (stores.Sign, error)
		want  []string
	}{
		{"nothing", func(time.Duration, *stores.Meter) (stores.Sign, error) { return stores.Sign{There: true}, nil }, nil},
		{"data lost", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			return stores.Sign{There: at < first}, nil
		},
			[]string{"store-lost-data: x lost what the run kept there, between 0.20 s and 0.30 s"}},
		{"data lost after a pause", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			if at > first && at < second {
				return stores.Sign{}, errors.New("cut off")
			}
			return stores.Sign{There: at < first}, nil
		}, []string{"store-failed: x did not answer as it should between 0.20 s and 0.50 s: cut off",
			"store-lost-data: x lost what the run kept there, between 0.20 s and 0.50 s"}},
		{"data lost at the end", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			return stores.Sign{There: at < 620*time.Millisecond}, nil
		}, []string{"store-lost-data: x lost what the run kept there, between 0.60 s and 0.65 s"}},
		{"data lost at the start", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			return stores.Sign{There: at < 50*time.Millisecond}, nil
		}, []string{"store-lost-data: x lost what the run kept there, between 0.00 s and 0.10 s"}},
		{"data lost before", func(time.Duration, *stores.Meter) (stores.Sign, error) { return stores.Sign{}, nil },
			[]string{"store-lost-data: x lost what the run kept there, before the first request"}},
		{"away", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			if at > first {
				return stores.Sign{}, errors.New("cut off")
			}
			return stores.Sign{There: true}, nil
		}, []string{"store-failed: x did not answer as it should between 0.20 s and 0.65 s: cut off"}},
		{"restarted", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			s := stores.Sign{There: true, Incarnation: "a", Errors: map[string]int64{"OOM": 7}}
			if at > first {
				s.Incarnation = "b"
				s.Errors = nil
			}
			return s, nil
		}, []string{"store-restarted: x was restarted, or another server took its place, between 0.20 s and 0.30 s", ": "}},
		{"refusing", func(at time.Duration, _ *stores.Meter) (stores.Sign, error) {
			return stores.Sign{There: true, Errors: map[string]int64{"OOM": steps(at, 0, 1, 4)}}, nil
		}, []string{"store-failed: x answered 4 commands with the error OOM, between 0.20 s and 0.50 s"}},
		{"severed", func(at time.Duration, m *stores.Meter) (stores.Sign, error) {
			m.Lost.Store(steps(at, 1, 2, 4))
			return stores.Sign{There: true}, nil
		}, []string{"store-failed: x ended or lost 3 connections of the strategy, between 0.20 s and 0.50 s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var meter stores.Meter
			begin := clock.Nano() + int64(time.Second)
			at := func() time.Duration { return time.Duration(clock.Nano() - begin) }
			var l Stores
			s := showing{shows: func() (stores.Sign, error) { return c.shows(at(), &meter) }}
			if err := l.Mark(t.Context(), "x", s, "scope", &meter); err != nil {
				t.Fatal(err)
			}
			l.Prepared(t.Context())
			time.Sleep(-at())
			l.Begin(t.Context(), clock.Nano)
			time.Sleep(650 * time.Millisecond)
			l.End(t.Context())
			var got []string
			for _, n := range l.Notices() {
				got = append(got, n.Code+": "+n.Detail)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: told\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
