package harness

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// fake is an instance that answers as it is told to.
type fake struct {
	strategies.Strategy
	used  map[quota.Subject][]quota.Reading
	err   error
	asked []quota.Request
	// apart is set if Used is called from a goroutine of its own.
	apart atomic.Bool
	room  int64 // units that are admitted; -1 without end
}

func (f *fake) Used(_ context.Context, s quota.Subject, _ *quota.Policy) ([]quota.Reading, error) {
	f.apart.Store(!bytes.Contains(debug.Stack(), []byte("testing.tRunner(")))
	return f.used[s], f.err
}

func (f *fake) Take(_ context.Context, r quota.Request) (quota.Decision, error) {
	f.asked = append(f.asked, r)
	admitted := f.room < 0 || r.Units <= f.room
	if admitted && f.room >= 0 {
		f.room -= r.Units
	}
	return quota.Decision{Admitted: admitted}, f.err
}

// blind has no counters.
type blind struct{ strategies.Strategy }

func session(counts quota.Counting, instances ...strategies.Strategy) *Session {
	return &Session{Plan: &Plan{},
		Selection: strategies.Selection{Meta: &strategies.Meta{Counts: counts, Kinds: quota.Kinds()}}, Instances: instances}
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		session *Session
		want    bool
	}{
		{session(quota.CountsAdmitted), false}, {session(quota.CountsNothing, &fake{}), false},
		{session(quota.CountsAdmitted, blind{}), false}, {session(quota.CountsAttempts, &fake{}), true},
	} {
		if got := c.session.Counts(); got != c.want {
			t.Errorf("%+v counts: %t", c.session, got)
		}
	}
}

// TestSample draws at most 500 subjects, others in each round.
func TestSample(t *testing.T) {
	all := make([]uint32, 2000)
	for i := range all {
		all[i] = uint32(3 * i)
	}
	p := Plan{Seed: 9}
	few := slices.Clone(all[:maxReadings])
	slices.Reverse(few)
	if got := p.Sample(few, 1); !slices.Equal(got, few) {
		t.Errorf("%d of as many as are allowed, in the order of %v", len(got), got[:2])
	}
	one := p.Sample(all, 1)
	again := p.Sample(all, 1)
	two := p.Sample(all, 2)
	if len(one) != maxReadings || !slices.IsSorted(one) || len(slices.Compact(slices.Clone(one))) != maxReadings {
		t.Errorf("%d subjects, in order: %t", len(one), slices.IsSorted(one))
	}
	if slices.ContainsFunc(one, func(s uint32) bool {
		return s%3 != 0 || s >= 6000
	}) || all[1] != 3 || !slices.IsSorted(all) {
		t.Error("the sample holds others, or what it was drawn from has changed")
	}
	if !slices.Equal(one, again) || slices.Equal(one, two) || slices.Equal(one, all[:maxReadings]) {
		t.Error("a round has a sample of its own, and only one")
	}
	if other := (&Plan{Seed: 10}).Sample(all, 1); slices.Equal(one, other) {
		t.Error("the seed changes nothing")
	}
}

// TestRead merges what three instances in two regions read.
func TestRead(t *testing.T) {
	own := func(units int64, known bool) quota.Reading {
		return quota.Reading{Tier: quota.TierProcess, Units: units, Known: known, PerInstance: true}
	}
	store := func(tier quota.Tier, units int64) quota.Reading {
		return quota.Reading{Tier: tier, Units: units, Known: true}
	}
	a := &fake{used: map[quota.Subject][]quota.Reading{"x": {own(2, true), store(quota.TierRedis, 7),
		store("own-name", 5)}, "y": {store(quota.TierRedis, 1)}}}
	b := &fake{used: map[quota.Subject][]quota.Reading{"x": {own(3, false), store(quota.TierRedis, 7),
		store("own-name", 6)}}}
	c := &fake{used: map[quota.Subject][]quota.Reading{"x": {own(4, false), store(quota.TierRedis, 9)},
		"y": {{Tier: quota.TierRedis, Units: 1}, own(0, false)}}}
	subjects := []Subject{{4, "x"}, {5, "y"}}
	read := func(parallel int, region func(int) string) []Reading {
		var at int64
		out, err := session(quota.CountsAdmitted, a, blind{}, b, c).Read(t.Context(), ReadConfig{Now: func() int64 {
			at++
			return at
		}, Parallel: parallel, Region: region}, subjects)
		if err != nil {
			t.Fatal(err)
		}
		if a.apart.Load() {
			t.Error("a single-threaded runner was asked from another goroutine")
		}
		return out
	}
	want := []Reading{
		{Subject: 4, Call: 1, Reply: 6, Tier: "process", Units: 9, Known: true, Own: true},
		{Subject: 4, Call: 1, Reply: 4, Tier: "redis", Units: 7, Known: true},
		{Subject: 4, Call: 1, Reply: 2, Tier: "own-name", Units: 5, Known: true},
		{Subject: 4, Call: 3, Reply: 4, Tier: "own-name", Units: 6, Known: true},
		{Subject: 4, Call: 5, Reply: 6, Tier: "redis", Units: 9, Known: true},
		{Subject: 5, Call: 7, Reply: 8, Tier: "redis", Units: 1, Known: true},
		{Subject: 5, Call: 11, Reply: 12, Tier: "redis", Units: 1},
		{Subject: 5, Call: 11, Reply: 12, Tier: "process", Own: true},
	}
	if got := read(1, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var tiers []string
	for _, r := range read(0, func(i int) string { return map[int]string{0: "west", 2: "east", 3: "east"}[i] }) {
		tiers = append(tiers, r.Tier)
	}
	if want := []string{"process", "redis west", "own-name", "redis east", "own-name", "redis east", "redis west",
		"redis east", "process"}; !slices.Equal(tiers, want) {
		t.Errorf("got  %q\nwant %q", tiers, want)
	}
}

// TestReadInParallel keeps the order of the subjects, and ends with an error.
func TestReadInParallel(t *testing.T) {
	f := &fake{used: map[quota.Subject][]quota.Reading{"x": {{Tier: quota.TierPostgres, Units: 1}},
		"y": {{Tier: quota.TierPostgres, Units: 2}}}}
	var subjects []Subject
	for i := range uint32(40) {
		subjects = append(subjects, Subject{i, quota.Subject([]string{"x", "y"}[i%2])})
	}
	cfg := ReadConfig{Now: func() int64 { return 1 }, Parallel: 2}
	got, err := session(quota.CountsAdmitted, f).Read(t.Context(), cfg, subjects)
	if err != nil || len(got) != 40 {
		t.Fatal(len(got), err)
	}
	if !f.apart.Load() {
		t.Error("questions are asked one after the other")
	}
	for i, r := range got {
		if r.Subject != uint32(i) || r.Units != int64(1+i%2) {
			t.Errorf("place %d: %+v", i, r)
		}
	}
	f.err = errors.New("gone")
	for _, parallel := range []int{1, 2} {
		cfg.Parallel = parallel
		if got, err := session(quota.CountsAdmitted, f).Read(t.Context(), cfg, subjects); !errors.Is(err, f.err) ||
			got != nil {
			t.Errorf("%d at a time: %v, %v", parallel, got, err)
		}
	}
}

// TestContradictions: instances that agree against the first make one reading.
func TestContradictions(t *testing.T) {
	var list []Reading
	for i, units := range []int64{7, 9, 9, 7} {
		list = merge(list, Reading{Call: int64(10 * i), Reply: int64(10*i + 1), Tier: "redis", Units: units, Known: true})
	}
	want := []Reading{{Call: 0, Reply: 31, Tier: "redis", Units: 7, Known: true},
		{Call: 10, Reply: 21, Tier: "redis", Units: 9, Known: true}}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got  %+v\nwant %+v", list, want)
	}
}

func TestSharedTiers(t *testing.T) {
	if !shared(quota.TierRedis) || !shared(quota.TierPostgres) || shared(quota.TierProcess) || shared(quota.TierModel) {
		t.Error("stores are shared, and nothing else is")
	}
}
