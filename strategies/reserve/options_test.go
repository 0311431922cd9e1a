package reserve

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestURLFails: the requests whose URL cannot be made are refunded, with either
// value of refund, and end in an error that the record asks for. Which ones they
// are follows from their IDs.
func TestURLFails(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for _, refund := range []string{refundAny, refundLiteral} {
			var failed [2][]uint64
			for run := range failed {
				env := with(t, env, quota.Options{"refund": refund, "url-fail-share": "0.3"})
				env.Prefix += refund + ":"
				env.Rand = rand.New(rand.NewPCG(1, 2))
				s := tenantOf(t, env, 0)
				for id := range uint64(100) {
					_, err := s.Take(t.Context(), quota.Request{ID: id, Subject: "t1", Policy: uploads, Units: 1})
					if err != nil && !errors.Is(err, strategies.ErrPrescribed) {
						t.Fatal(err)
					}
					if err != nil {
						failed[run] = append(failed[run], id)
					}
				}
				used(t, s, int64(100-len(failed[run])))
			}
			if n := len(failed[0]); n < 15 || n > 45 || !slices.Equal(failed[0], failed[1]) {
				t.Errorf("refund=%s: URLs failed for %v and %v, want 30 of 100 and both times the same", refund, failed[0],
					failed[1])
			}
		}
	})
}

// TestCall: by default every call carries the script, and by digest none does.
func TestCall(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		for value, want := range map[string]string{callEval: "eval", callDigest: "evalsha"} {
			c := redis.NewClient(strategies.Redis(env).(*redis.Client).Options())
			t.Cleanup(func() { closing(t, c) })
			env := with(t, env, quota.Options{"call": value})
			env.Clients = maps.Clone(env.Clients)
			env.Clients["redis"] = c
			s := tenantOf(t, env, 0)
			w := &sent{}
			c.AddHook(w)
			must(t, s.Refund(t.Context(), take(t, s, 1, true)))
			if !slices.Equal(w.names, []string{want, want}) {
				t.Errorf("call=%s: sent %q, want %s twice", value, w.names, want)
			}
		}
	})
}

// sent notes the names of a client's commands.
type sent struct {
	betweenGetAndSet // for its other hooks
	names            []string
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" {
			s.names = append(s.names, cmd.Name())
		}
		return next(ctx, cmd)
	}
}

// TestWhenSyncsRun: one job by the clock, which may have any period or none, and
// one in every instance that a rejection wakes.
func TestWhenSyncsRun(t *testing.T) {
	onBoth(t, func(t *testing.T, env strategies.Env) {
		jobs := tenantOf(t, env, 0).Jobs()
		if len(jobs) != 1 || jobs[0].Every != 24*time.Hour || !jobs[0].Singleton || jobs[0].Pending != nil {
			t.Errorf("by default there are %+v, want one nightly job", jobs)
		}
		if jobs := tenantOf(t, with(t, env, quota.Options{"sync": "0s"}), 0).Jobs(); len(jobs) != 0 {
			t.Errorf("sync=0s leaves %+v", jobs)
		}
		var woken []string
		env = with(t, env, quota.Options{"sync": "3s", "demand": demandRejected})
		env.Wake = func(job string) { woken = append(woken, job) }
		s := tenantOf(t, env, 100)
		jobs = s.Jobs()
		if len(jobs) != 2 || jobs[0].Every != 3*time.Second || jobs[1].Singleton || jobs[1].Pending == nil {
			t.Fatalf("there are %+v, want one every 3 s and one on demand", jobs)
		}
		must(t, strategies.Redis(env).Set(t.Context(), env.Prefix+"quota:tenant:t1:used", 1000, 0).Err())
		take(t, s, 0, true)
		if jobs[1].Pending() || woken != nil {
			t.Error("a sync is due although nothing was rejected")
		}
		take(t, s, 1, false)
		if !jobs[1].Pending() || !slices.Equal(woken, []string{jobs[1].Name}) {
			t.Errorf("after a rejection %q were woken, and a sync is due: %v", woken, jobs[1].Pending())
		}
		changed, err := jobs[1].Run(t.Context())
		must(t, err)
		if !changed || jobs[1].Pending() {
			t.Errorf("a round on demand changed something: %v, and another one is due: %v", changed, jobs[1].Pending())
		}
		used(t, s, 100)
	})
}
