package harness

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// provisioned is set up by its own means.
type provisioned struct {
	fake
	grants []strategies.Grant
}

func (p *provisioned) Provision(_ context.Context, _ *quota.Policy, grants []strategies.Grant) error {
	p.grants = grants
	return p.err
}

func units(requests []quota.Request) (out []int64) {
	for _, r := range requests {
		out = append(out, r.Units)
	}
	return out
}

// TestFillServed asks for no cost that the strategy does not serve.
func TestFillServed(t *testing.T) {
	in := &fake{room: -1}
	s := session(quota.CountsAdmitted, in)
	s.Selection.Serves = func(p *quota.Policy) error {
		if len(p.Costs) > 0 && slices.Max(p.Costs) > 2 {
			return errors.New("serves costs of at most 2")
		}
		return nil
	}
	grants := []strategies.Grant{{Subject: "x", Used: 7}}
	p := &quota.Policy{Costs: []int64{1, 5, 2}}
	if err := s.Provision(t.Context(), p, grants, 0); err != nil {
		t.Fatal(err)
	}
	if got := units(in.asked); !slices.Equal(got, []int64{2, 2, 2, 1}) || grants[0].Used != 7 {
		t.Errorf("asked for %v, %d are used", got, grants[0].Used)
	}
	grants[0].Used = 3 << 20
	if err := s.Provision(t.Context(), p, grants, 0); err == nil ||
		!strings.Contains(err.Error(), "more than a million requests") {
		t.Errorf("filled by requests that are not served: %v", err)
	}
}

// TestFillByUnitsNotServed: a strategy that serves no single units is asked for them
// if a subject cannot be filled otherwise, and for nothing if there is nothing
// to fill.
func TestFillByUnitsNotServed(t *testing.T) {
	for used, want := range map[int64][]int64{0: nil, 3: {1, 1, 1}} {
		in := &fake{room: -1}
		s := session(quota.CountsAdmitted, in)
		s.Selection.Serves = func(p *quota.Policy) error {
			if slices.Equal(p.Costs, []int64{1}) {
				return errors.New("serves no single units")
			}
			return nil
		}
		if err := s.Provision(t.Context(), &quota.Policy{}, []strategies.Grant{{Subject: "x", Used: used}}, 0); err != nil {
			t.Errorf("%d units: %v", used, err)
		}
		if got := units(in.asked); !slices.Equal(got, want) {
			t.Errorf("%d units: asked for %v, want %v", used, got, want)
		}
	}
}

// TestFill asks for what a subject has used in requests of the largest cost.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		name       string
		costs      []int64
		used, room int64
		want       []int64
		left       int64
	}{
		{"whole", []int64{1, 4, 2}, 8, -1, []int64{4, 4}, 8},
		{"with a rest", []int64{1, 4, 2}, 9, -1, []int64{4, 4, 1}, 9},
		{"no costs", nil, 3, -1, []int64{1, 1, 1}, 3},
		{"rejected", []int64{3}, 8, 5, []int64{3, 3}, 3},
		{"nothing", []int64{3}, 0, -1, nil, 0},
		{"more room than is there", []int64{3}, 5 * 3 * fillRequests, 13, []int64{18, 9, 9, 3, 3}, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &fake{room: c.room}
			grants := []strategies.Grant{{Subject: "x", Used: c.used}}
			p := &quota.Policy{Costs: c.costs}
			if err := session(quota.CountsAdmitted, in).Provision(t.Context(), p, grants, 0); err != nil {
				t.Fatal(err)
			}
			if got := units(in.asked); !slices.Equal(got, c.want) || grants[0].Used != c.left {
				t.Errorf("asked for %v, want %v; %d are used, want %d", got, c.want, grants[0].Used, c.left)
			}
			for i, r := range in.asked {
				if r.Subject != "x" || r.Policy != p || r.ID != bounds.FillID+uint64(i) {
					t.Errorf("request %+v", r)
				}
			}
		})
	}
}

// TestFillInBulk: as much is used as after requests of one unit, and few requests are made if larger ones are served.
func TestFillInBulk(t *testing.T) {
	const many, few = 100_000, 2 * fillRequests
	single := func(p *quota.Policy) error {
		if slices.ContainsFunc(p.Costs, func(c int64) bool { return c != 1 }) {
			return errors.New("serves single units")
		}
		return nil
	}
	for _, c := range []struct {
		name       string
		counts     quota.Counting
		serves     func(*quota.Policy) error
		room, used int64
		bulk       bool
	}{
		{"all", quota.CountsAdmitted, nil, -1, many, true},
		{"as far as there is room", quota.CountsNothing, nil, 12_357, 12_357, true},
		{"unit by unit", quota.CountsAdmitted, single, -1, many, false},
		{"attempts", quota.CountsAttempts, nil, -1, many, false},
	} {
		in := &fake{room: c.room}
		s := session(c.counts, in)
		s.Selection.Serves = c.serves
		shares := []float64{0}
		s.Filling = func(share float64) { shares = append(shares, share) }
		grants := []strategies.Grant{{Subject: "x", Used: many}}
		if err := s.Provision(t.Context(), &quota.Policy{}, grants, 0); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := len(in.asked); grants[0].Used != c.used || (n <= few) != c.bulk {
			t.Errorf("%s: %d units by %d requests, want %d, in bulk %t", c.name, grants[0].Used, n, c.used, c.bulk)
		}
		if len(shares) < 100 || !slices.IsSorted(shares) || shares[len(shares)-1] != 1 {
			t.Errorf("%s: told %d times, at last of %g", c.name, len(shares), shares[len(shares)-1])
		}
	}
}

// singles fails for requests of several units, although it declares no such thing.
type singles struct{ fake }

func (s *singles) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	if r.Units > 1 {
		return quota.Decision{}, errors.New("one at a time")
	}
	return s.fake.Take(ctx, r)
}

// TestFillBySinglesInTheEnd: a strategy that fails for large requests is filled by usual ones.
func TestFillBySinglesInTheEnd(t *testing.T) {
	in := &singles{fake{room: -1}}
	grants := []strategies.Grant{{Subject: "x", Used: 2 * fillRequests}}
	if err := session(quota.CountsAdmitted, in).Provision(t.Context(), &quota.Policy{}, grants, 0); err != nil ||
		len(in.asked) != 2*fillRequests {
		t.Errorf("filled by %d requests of one unit, want %d: %v", len(in.asked), 2*fillRequests, err)
	}
}

// parts grants what is left of its room.
type parts struct{ fake }

func (p *parts) Take(_ context.Context, r quota.Request) (quota.Decision, error) {
	n := min(r.Units, p.room)
	p.room -= n
	return quota.Decision{Admitted: n > 0, Granted: n}, nil
}

func TestFillByPartialGrants(t *testing.T) {
	grants := []strategies.Grant{{Subject: "x", Used: 9}}
	if err := session(quota.CountsNothing, &parts{fake{room: 5}}).Provision(t.Context(), &quota.Policy{Costs: []int64{4}},
		grants, 0); err != nil || grants[0].Used != 5 {
		t.Errorf("%d are used, want the 5 that were granted: %v", grants[0].Used, err)
	}
}

// TestProvision numbers the requests of each subject and each instance apart.
func TestProvision(t *testing.T) {
	a := &fake{room: -1}
	b := &fake{room: -1}
	own := &provisioned{}
	s := session(quota.CountsAdmitted, a, own, b)
	grants := []strategies.Grant{{Subject: "x", Used: 2}, {Subject: "y", Used: 1}}
	if err := s.Provision(t.Context(), &quota.Policy{}, grants, 0, 1, 2); err != nil {
		t.Fatal(err)
	}
	if len(own.asked) != 0 || !reflect.DeepEqual(own.grants, grants) {
		t.Errorf("%+v was granted, and %+v asked for", own.grants, own.asked)
	}
	var ids []uint64
	for _, r := range append(a.asked, b.asked...) {
		ids = append(ids, r.ID-bounds.FillID)
	}
	// The third instance comes after two of two subjects each.
	if want := []uint64{0, 1, 1 << 20, 4 << 20, 4<<20 + 1, 5 << 20}; !slices.Equal(ids, want) {
		t.Errorf("requests %v, want %v", ids, want)
	}
	if err := s.Provision(t.Context(), &quota.Policy{}, nil, 0, 1, 2); err != nil || own.grants == nil ||
		len(a.asked) != 3 {
		t.Error("provision no subject", err)
	}
	a.err, own.err = errors.New("gone"), errors.New("away")
	for n, want := range []string{"fill x: gone", "provision 2 subjects: away"} {
		if err := s.Provision(t.Context(), &quota.Policy{}, grants, n); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestGrants(t *testing.T) {
	got := Grants(&flow{used: 3}, &quota.Policy{Limit: 10}, 2)
	want := []strategies.Grant{{Subject: "s0", Limit: 10, Used: 3}, {Subject: "s1", Limit: 10, Used: 4}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestCost(t *testing.T) {
	if got := (&quota.Policy{Costs: []int64{2, 5, 3}}).LeastCost(); got != 2 {
		t.Error(got)
	}
	if got := (&quota.Policy{}).LeastCost(); got != 1 {
		t.Error(got)
	}
}
