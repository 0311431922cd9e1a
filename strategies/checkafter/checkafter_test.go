package checkafter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/clock"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/checkafter"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// slept is a clock that notes how long it is asked to wait, and does not.
type slept struct {
	clock.Wall
	d []time.Duration
}

func (s *slept) Sleep(ctx context.Context, d time.Duration) error {
	s.d = append(s.d, d)
	return ctx.Err()
}

// TestBytes plants what is uploaded and what of it is thrown away.
func TestBytes(t *testing.T) {
	sel := testkit.Strategy(t, "check-after:size=1000,bandwidth=100000")
	client, prefix := storetest.RedisClient(t)
	c := new(slept)
	s, err := sel.Open(t.Context(),
		strategies.Env{Clock: c, Clients: map[string]any{"redis": client}, Prefix: prefix, Options: sel.Options,
			Instances: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := &quota.Policy{Name: "p", Limit: 10, Unit: "kB"}
	for i, x := range []struct {
		units    int64
		admitted bool
		left     int64
	}{{6, true, 4}, {5, false, 4}, {4, true, 0}, {1, false, 0}} {
		d, err := s.Take(t.Context(), quota.Request{ID: uint64(i), Subject: "s", Policy: p, Units: x.units})
		if err != nil || d.Admitted != x.admitted || d.Remaining != x.left {
			t.Errorf("upload %d: %+v, %v; want %+v", i, d, err, x)
		}
	}
	m := s.(strategies.Meter).Measures()
	if m[0].Name != "uploaded" || m[0].Value != 16_000 || m[1].Name != "wasted" || m[1].Value != 6_000 {
		t.Errorf("%+v, want 16,000 bytes uploaded and 6,000 wasted", m)
	}
	want := []time.Duration{60 * time.Millisecond, 50 * time.Millisecond, 40 * time.Millisecond, 10 * time.Millisecond}
	if !slices.Equal(c.d, want) {
		t.Errorf("uploads took %v, want %v", c.d, want)
	}
}

// TestFlaws finds what the Meta says: an upload that is about to be deleted rejects
// one that fits, and a DECRBY that a client repeats gives away what others hold.
func TestFlaws(t *testing.T) {
	p := testkit.Policy(t, "tenant-uploads")
	for _, c := range []struct {
		property explore.Property
		scripts  string
		faults   []quota.Fault
		used     int64
		clients  int
		limit    int64
		found    bool
	}{
		{property: explore.FalseReject, scripts: "take=3;take=2", used: 1, clients: 2, limit: 3, found: true},
		{property: explore.Leak, scripts: "take;take;take,take", faults: []quota.Fault{quota.FaultRetry}, clients: 3,
			limit: 2, found: true},
		{property: explore.Leak, scripts: "take;take;take,take",
			faults: []quota.Fault{quota.FaultLostReply, quota.FaultCrash}, clients: 3, limit: 2},
	} {
		scripts, err := explore.ParseScripts(c.scripts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), testkit.Strategy(t, "check-after"), explore.Config{
			Policy: p, Limit: c.limit, Used: c.used, Clients: c.clients, Scripts: scripts, Faults: c.faults,
			Properties: []explore.Property{c.property},
		})
		if err != nil {
			t.Fatal(err)
		}
		// Its guarantee allows that false reject.
		if got := r.Found(c.property) != nil || c.property == explore.FalseReject && r.AllowedBy != ""; got != c.found {
			t.Errorf("%s under %v with %s: found %v, want %v (%d states)", c.property, c.faults, c.scripts, got, c.found,
				r.States)
		}
	}
}
