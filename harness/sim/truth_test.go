package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// The series expects of a counter what the oracle works out of the same
// history, at every moment.
func TestTruthExpectsWhatTheOracleDoes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		counts := []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts}[seed%2]
		policy := quota.Policy{Limit: 20, Window: quota.Window{Kind: quota.Standing}}
		tr := truth{policy: &policy, counts: counts, subjects: make([]subject, 1), span: window{end: 1 << 62},
			most: policy.Limit}
		var events []oracle.Event
		type open struct {
			subject *subject
			asked   asked
			event   oracle.Event
		}
		var inFlight []open
		now := int64(0)
		for range 60 {
			now += 10
			if len(inFlight) > 0 && r.IntN(2) == 0 {
				i := r.IntN(len(inFlight))
				o := inFlight[i]
				inFlight = append(inFlight[:i], inFlight[i+1:]...)
				o.event.Reply = now
				o.event.Outcome = []oracle.Outcome{oracle.Admitted, oracle.Rejected, oracle.Failed,
					oracle.RejectedDegraded}[r.IntN(4)]
				tr.end(asking{subject: o.subject, call: o.event.Call, began: o.asked}, o.event.Units, o.event.Units, now,
					o.event.Outcome)
				events = append(events, o.event)
			} else {
				units := 1 + r.Int64N(4)
				s, asked := tr.begin(0, units, now)
				inFlight = append(inFlight, open{s, asked, oracle.Event{Call: now, Reply: 1 << 40, Units: units}})
			}
			all := append([]oracle.Event{}, events...)
			for _, o := range inFlight {
				e := o.event
				e.Outcome = oracle.Admitted // as it may yet be
				all = append(all, e)
			}
			want, _, err := oracle.Expect(oracle.Config{}, 0, all, oracle.Reading{Call: now + 1, Reply: now + 1}, counts)
			if err != nil {
				t.Fatal(err)
			}
			if got := tr.expected(&tr.subjects[0], now); got != want.Units {
				t.Fatalf("seed %d at %d: %+v, want %+v of %+v", seed, now, got, want, all)
			}
		}
	}
}

func TestStale(t *testing.T) {
	var tr track
	for i, units := range []int64{0, 3, 5, 3} {
		tr.note(int64(i)*10, units, 0)
	}
	for value, want := range map[int64]int64{3: 0, 5: 10, 0: 30} { // until 40
		if ns, ok := tr.stale(value, 40); !ok || ns != want {
			t.Errorf("%d was true %d ns ago (%v), want %d", value, ns, ok, want)
		}
	}
	if _, ok := tr.stale(4, 40); ok {
		t.Error("4 was never true")
	}
}

// Every table is drawn from as it is written, and a server does one thing at a time.
func TestTableAndServer(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	n := defaultPostgres().Service.lines()
	const draws = 200_000
	below := 0
	for range draws {
		if n.draw(rng) <= 27800*time.Microsecond {
			below++
		}
	}
	if below < draws*985/1000 || below > draws*995/1000 {
		t.Errorf("%d of %d draws are below the 99th percentile", below, draws)
	}
	s := newServer(Network{Service: always(5), Servers: 1})
	two := newServer(Network{Service: always(5), Servers: 2})
	for i, want := range []time.Duration{5, 10, 15} {
		if got := s.serve(100, rng); got != want {
			t.Errorf("command %d of one server takes %d, want %d", i, got, want)
		}
	}
	for i, want := range []time.Duration{5, 5, 10} {
		if got := two.serve(100, rng); got != want {
			t.Errorf("command %d of two servers takes %d, want %d", i, got, want)
		}
	}
}
