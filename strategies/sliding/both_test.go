package sliding

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The first quota is charged for what the second rejects, unless both are charged together. A command that comes
// again is charged once, and a refund gives back to both.
func TestBoth(t *testing.T) {
	user := &quota.Policy{Name: "user", Limit: 4, Unit: "calls",
		Window: quota.Window{Kind: quota.Rolling, Length: time.Minute}}
	route := &quota.Policy{Name: "route", Limit: 2, Unit: "calls",
		Window: quota.Window{Kind: quota.Rolling, Length: time.Hour}}
	for both, charged := range map[string]int64{"after": 4, "together": 2} {
		b := newBench(t, &logMeta, quota.Options{"both": both})
		take := func(id uint64, want quota.Decision) quota.Reservation {
			t.Helper()
			req := quota.Request{ID: id, Subject: "a", Policy: user, Units: 1}
			req.Second.Subject = "r"
			req.Second.Policy = route
			d, err := b.strategy.Take(t.Context(), req)
			r := d.Reservation
			d.Reservation = (quota.Reservation{})
			want.Tier = quota.TierRedis
			if err != nil || d != want {
				t.Errorf("%s, request %d: %+v, %v, want %+v", both, id, d, err, want)
			}
			return r
		}
		used := func(subject quota.Subject, p *quota.Policy, want int64) {
			t.Helper()
			if r, err := b.strategy.(strategies.Viewer).Used(t.Context(), subject, p); err != nil || r[0].Units != want {
				t.Errorf("%s: %s has %+v, %v, want %d", both, subject, r, err, want)
			}
		}
		left := func(ofUser, ofRoute int64) int64 { // what a decision says remains: that of the quota that was asked last
			if both == "after" {
				return ofRoute
			}
			return ofUser
		}
		first := take(1, quota.Decision{Admitted: true, Remaining: left(3, 1)})
		take(1, quota.Decision{Admitted: true, Remaining: left(3, 1)})
		b.at(time.Second)
		take(2, quota.Decision{Admitted: true, Remaining: left(2, 0)})
		for _, id := range []uint64{3, 4} {
			take(id, quota.Decision{BySecond: true, Remaining: left(2, 0), RetryAfter: time.Hour - time.Second})
		}
		used("a", user, charged)
		used("r", route, 2)
		if both == "after" { // the user has no unit left, and the route is not asked
			take(5, quota.Decision{RetryAfter: time.Minute - time.Second})
		}
		if err := b.strategy.(strategies.Refunder).Refund(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		used("a", user, charged-1)
		used("r", route, 1)
		take(6, quota.Decision{Admitted: true, Remaining: left(2, 0)})
	}
}
