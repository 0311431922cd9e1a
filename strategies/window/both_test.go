package window

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// The first quota is charged for what the second rejects, unless both are charged together; each that rejects says so.
func TestBoth(t *testing.T) {
	for both, want := range map[string]int64{"after": 3, "together": 1} {
		t.Run(both, func(t *testing.T) {
			onBoth(t, func(t *testing.T, env strategies.Env, _ *dial) {
				env.Options["both"] = both
				w := &wire{}
				env.Clients["redis"].(*redis.Client).AddHook(w)
				s := open(t, fixedMeta, env)
				user := policy(quota.Fixed, time.Minute, 3)
				route := policy(quota.Fixed, time.Hour, 1)
				route.Name = "route"
				req := quota.Request{Subject: "u", Policy: user, Units: 1}
				req.Second.Subject = "r"
				req.Second.Policy = route
				take := func(admitted, bySecond, degraded bool) {
					t.Helper()
					d, err := s.Take(t.Context(), req)
					if err != nil || d.Admitted != admitted || d.BySecond != bySecond || d.Degraded != degraded {
						t.Fatalf("%+v, %v, want admitted %v, by the second %v, degraded %v", d, err, admitted, bySecond, degraded)
					}
				}
				used := func(subject quota.Subject, p *quota.Policy, want int64) {
					t.Helper()
					if r, err := s.(strategies.Viewer).Used(t.Context(), subject, p); err != nil || r[0].Units != want {
						t.Fatalf("%s has %+v, %v, want %d", subject, r, err, want)
					}
				}
				take(true, false, false)
				take(false, true, false)
				take(false, true, false)
				used("u", user, want)
				used("r", route, 3)
				if both == "after" { // the user has no unit left, and the route is not asked
					take(false, false, false)
					used("u", user, 4)
					used("r", route, 3)
				}
				w.down = true
				take(true, false, true)
				take(false, true, true)
			})
		})
	}
}
