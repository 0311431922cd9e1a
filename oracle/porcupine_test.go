package oracle_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// counter is the state of porcupine's model: a counter that begins with used units and never passes its limit.
type counter struct{ used, limit int64 }

// ordered reports whether porcupine finds an order of events, each between its call and its reply, in which the counter
// gives the answers that were given. An exact counter rejects only if there is no room. A failed request may take
// effect at any time from its call on, or not at all.
func ordered(start counter, exact bool, events []oracle.Event) bool {
	var operations []porcupine.Operation
	for _, event := range events {
		reply := event.Reply
		if event.Outcome == oracle.Failed {
			reply = math.MaxInt64 / 2
		}
		operations = append(operations, porcupine.Operation{Input: event, Call: event.Call, Return: reply})
	}
	model := porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, _ any) (bool, any) {
			counter := state.(counter)
			event := input.(oracle.Event)
			fits := counter.used+event.Units <= counter.limit
			switch {
			case event.Kind == oracle.Refund:
				counter.used -= event.Units
				return true, counter
			case event.Outcome == oracle.Rejected:
				return !exact || !fits, counter
			case fits:
				counter.used += event.Units
				return true, counter
			default:
				return event.Outcome == oracle.Failed, counter
			}
		},
	}
	return porcupine.CheckOperations(model, operations)
}

// TestAgreesWithPorcupine: on random histories, porcupine finds an order where counting does, and none where units
// leaked for certain.
func TestAgreesWithPorcupine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[oracle.Linear]int{}
	leaks := 0
	for range 3000 {
		start := counter{used: r.Int64N(3), limit: r.Int64N(4)}
		mostUnits := 1 + r.Int64N(2)
		refunds := mostUnits > 1
		var events []oracle.Event
		for range 1 + r.IntN(7) {
			call := r.Int64N(16)
			outcome := []oracle.Outcome{oracle.Admitted, oracle.Admitted, oracle.Rejected, oracle.Failed}[r.IntN(4)]
			take := oracle.Event{Call: call, Reply: call + r.Int64N(9), Units: 1 + r.Int64N(mostUnits), Outcome: outcome}
			events = append(events, take)
			if refunds && outcome == oracle.Admitted && r.IntN(2) == 0 {
				refund := oracle.Event{Kind: oracle.Refund, Call: take.Reply + 1 + r.Int64N(4), Units: take.Units,
					TakeCall: take.Call, TakeReply: take.Reply}
				refund.Reply = refund.Call + r.Int64N(6)
				events = append(events, refund)
			}
		}
		head := oracle.Header{Policy: quota.Policy{Limit: start.limit}, Epoch: time.Unix(0, 0),
			Initial: map[uint32]int64{0: start.used}}
		verdict := oracle.Judge(head.Config(), events)
		safe := ordered(start, false, events)
		exact := ordered(start, true, events)
		if linear := verdict.Linear; linear.Decided && (linear.Safe != safe || linear.Exact != exact) {
			t.Fatalf("%+v: counting says %+v, porcupine safe %t, exact %t\n%+v", start, linear, safe, exact, events)
		}
		if verdict.LeakUnits > 0 && safe {
			t.Fatalf("%+v: %d units leaked, and porcupine has an order\n%+v", start, verdict.LeakUnits, events)
		}
		seen[verdict.Linear]++
		if verdict.LeakUnits > 0 && !verdict.Linear.Decided {
			leaks++
		}
	}
	for _, linear := range []oracle.Linear{{}, {Decided: true}, {Decided: true, Safe: true},
		{Decided: true, Safe: true, Exact: true}} {
		if seen[linear] < 60 {
			t.Errorf("only %d of %+v", seen[linear], linear)
		}
	}
	if leaks < 60 {
		t.Errorf("only %d leaks of several units", leaks)
	}
}
