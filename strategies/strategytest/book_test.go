package strategytest

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
)

// TestRefundsKnowTheirTake refunds and commits in a later window than the epoch's.
// A refund that does not name its take is charged to the epoch's window, and the
// units that were had again look like a leak.
func TestRefundsKnowTheirTake(t *testing.T) {
	for _, late := range []time.Duration{0, 2 * time.Hour} {
		p := quota.Policy{Name: "hourly", Unit: "units", Limit: 3, Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
		// The strategy counts for a standing policy: it takes back what comes late.
		standing := p
		standing.Window = quota.Window{Kind: quota.Standing}
		m := sample(func(d *double) {
			d.take = func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error) {
				return d.withPolicy(ctx, req, func(p *quota.Policy) { p.Window = standing.Window })
			}
			d.refund = func(d *double, ctx context.Context, r quota.Reservation) error {
				r.Request.Policy = &standing
				return d.full.Refund(ctx, r)
			}
		})
		f := open(t, m, Stores{Redis: clients(storetest.EmbeddedRedis(t))}, 1)
		b := f.book(&standing)
		b.policy = &p
		b.epoch -= int64(24 * time.Hour)
		s := subject{b.subjects.Add(1), "s"}
		held := b.take(s, 3)
		b.epoch -= int64(late) // the rest happens so much later
		if err := b.refund(s, held.Reservation, 3); err != nil {
			t.Fatal(err)
		}
		if again := b.take(s, 3); !again.Admitted {
			t.Fatalf("late by %v: %+v", late, again)
		}
		take := b.events[0]
		refund := b.events[1]
		if refund.Kind != oracle.Refund || refund.TakeCall != take.Call || refund.TakeReply != take.Reply {
			t.Errorf("late by %v: %+v does not name %+v", late, refund, take)
		}
		if v := b.judge(p.Window); v.LeakUnits != 0 || v.Malformed != 0 {
			t.Errorf("late by %v: %d units leaked, %d events malformed", late, v.LeakUnits, v.Malformed)
		}
		if late > 0 { // into the same window as the last take, another one of its whole limit
			b.record(0, oracle.Event{Call: b.epoch + b.events[2].Reply + 1, Reply: b.epoch + b.events[2].Reply + 2, Units: 3,
				Subject: s.number, Outcome: oracle.Admitted})
			if v := b.judge(p.Window); v.LeakPossible != 3 {
				t.Errorf("late by %v: %d units possibly leaked, not 3: the late refund made room", late, v.LeakPossible)
			}
		}
	}
}
