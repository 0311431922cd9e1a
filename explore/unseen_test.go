package explore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// fixed plants a fixed window of an hour over one counter: what a published limiter
// does that knows nothing of its surroundings.
func fixed(client func(env strategies.Env) redis.UniversalClient, now func(env strategies.Env) time.Time,
	under func(ctx context.Context) context.Context) strategies.Selection {
	s := plant(func(ctx context.Context, p *planted, r quota.Request) (quota.Decision, error) {
		c := client(p.env)
		key := fmt.Sprintf("%sw%d", p.env.Prefix, now(p.env).Unix()/3600)
		n, err := c.IncrBy(under(ctx), key, r.Units).Result()
		return verdict(n <= r.Policy.Limit, err)
	})
	s.Needs = []strategies.Need{strategies.NeedRedis}
	s.Kinds = []quota.Kind{quota.CalendarHour}
	s.Reset = strategies.ResetsWindow
	return s
}

func given(env strategies.Env) redis.UniversalClient { return strategies.Redis(env) }
func virtual(env strategies.Env) time.Time           { return env.Clock.Now() }
func callers(ctx context.Context) context.Context    { return ctx }
func background(context.Context) context.Context     { return context.Background() }
func wall(strategies.Env) time.Time                  { return clock.Wall{}.Now() }
func withheldCodes(r *explore.Result) (out []witness.Code) {
	for _, w := range r.Withheld {
		out = append(out, witness.Code(w.Code))
	}
	return out
}

// withheld explores a limiter about which nothing may be claimed.
func withheld(t *testing.T, sel strategies.Selection, cfg explore.Config) *explore.Result {
	t.Helper()
	r, err := explore.Run(t.Context(), sel, cfg)
	if !errors.Is(err, explore.ErrUnseen) || r == nil {
		t.Fatalf("error %v beside %+v", err, r)
	}
	if r.Claim != "" {
		t.Errorf("claims: %s", r.Claim)
	}
	var b bytes.Buffer
	if err := text.Search(&b, layout.Page{}, r, ""); err != nil || !strings.Contains(b.String(), "NOTHING IS CLAIMED: ") {
		t.Errorf("report: %v\n%s", err, b.String())
	}
	return r
}

// What is not seen is not called clean, and the report says why.
func TestUnseenWorkIsNotClean(t *testing.T) {
	elsewhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialTimeout: 50 * time.Millisecond,
		DialerRetries: 1})
	t.Cleanup(func() { _ = elsewhere.Close() })
	var mu sync.Mutex
	for _, c := range []struct {
		name string
		sel  strategies.Selection
		want []witness.Code
	}{
		{"context.Background()", fixed(given, virtual, background), []witness.Code{witness.ContextLost}},
		{"a connection of its own, elsewhere", fixed(func(strategies.Env) redis.UniversalClient {
			return elsewhere
		}, virtual, callers),
			[]witness.Code{witness.NoCommand, witness.AllFailed}},
		{"a client of its own, to the same store", fixed(func(env strategies.Env) redis.UniversalClient {
			o := *strategies.Redis(env).(*redis.Client).Options()
			return redis.NewClient(&o)
		}, virtual, callers), []witness.Code{witness.OtherClient, witness.NoCommand, witness.AllFailed}},
		{"the wall clock, in a key", fixed(given, wall, callers), []witness.Code{witness.WallClock}},
		{"the wall clock, as an argument",
			plantNeeding(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
				return verdict(true, strategies.Redis(p.env).ZAdd(ctx, "log",
					redis.Z{Score: float64(wall(p.env).UnixMilli()), Member: "m"}).Err())
			}), []witness.Code{witness.WallClock}},
		{"no command at all", plantNeeding(func(context.Context, *planted, quota.Request) (quota.Decision, error) {
			return verdict(true, nil)
		}), []witness.Code{witness.NoCommand}},
		{"a goroutine of its own", plantNeeding(func(ctx context.Context, p *planted, _ quota.Request) (d quota.Decision,
			err error) {
			done := make(chan error)
			go func() { done <- strategies.Redis(p.env).Incr(ctx, "k").Err() }()
			return verdict(true, <-done)
		}), []witness.Code{witness.OwnGoroutine, witness.AllFailed}},
		{"a goroutine of its own, without a context",
			plantNeeding(func(_ context.Context, p *planted, _ quota.Request) (d quota.Decision, err error) {
				done := make(chan error)
				go func() { done <- strategies.Redis(p.env).Incr(context.Background(), "k").Err() }()
				return verdict(true, <-done)
			}), []witness.Code{witness.OwnGoroutine, witness.AllFailed}},
		{"time.Now in process", inProcess(&mu, wall), []witness.Code{witness.NeverAgain}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := withheld(t, c.sel, explore.Config{Limit: 1, Faults: []quota.Fault{quota.FaultCrash},
				Bounds: explore.Bounds{MaxStates: 500}})
			if got := withheldCodes(r); !slices.Equal(got, c.want) {
				t.Errorf("withheld for %+v, want %v", r.Withheld, c.want)
			}
		})
	}
}

// A length of time that looks like the wall clock's seconds is none, and what is cut down
// to the hour is the wall clock's nevertheless, though it does not move during a search.
func TestLengthsOfTimeAreNotTheWallClock(t *testing.T) {
	length := wall(strategies.Env{}).Unix() // in microseconds some 29.9 minutes
	for name, value := range map[string]func(env strategies.Env) int64{
		"a length": func(strategies.Env) int64 { return length },
		"the hour": func(env strategies.Env) int64 { return wall(env).Truncate(time.Hour).Unix() },
		"both":     func(env strategies.Env) int64 { return max(length, wall(env).Truncate(time.Hour).Unix()) },
	} {
		sel := plantNeeding(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
			if name == "both" {
				if err := strategies.Redis(p.env).HSet(ctx, "h", "length", length, "hour",
					wall(p.env).Truncate(time.Hour).Unix()).Err(); err != nil {
					return verdict(false, err)
				}
			}
			n, err := strategies.Redis(p.env).Eval(ctx, "return redis.call('INCR', KEYS[1])", []string{"n"},
				value(p.env)).Int64()
			return verdict(n <= 1, err)
		})
		r, err := explore.Run(t.Context(), sel, explore.Config{Limit: 1, Clients: 3})
		if r == nil {
			t.Fatal(err)
		}
		if got, want := withheldCodes(r), name != "a length"; slices.Contains(got, witness.WallClock) != want ||
			want == (r.Claim != "") {
			t.Errorf("%s: %v, claims %q", name, r.Withheld, r.Claim)
		}
	}
}

// A goroutine of the strategy's own does not bring a long enumeration down.
func TestOwnGoroutinesEndNothing(t *testing.T) {
	sel := plantNeeding(func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		if err := strategies.Redis(p.env).Incr(ctx, "n").Err(); err != nil {
			return verdict(false, err)
		}
		done := make(chan error)
		go func() { done <- strategies.Redis(p.env).Incr(ctx, "k").Err() }()
		<-done
		return verdict(true, strategies.Redis(p.env).Incr(ctx, "m").Err())
	})
	c, err := explore.Enumerate(t.Context(), sel,
		explore.Config{Clients: 4, Limit: 3, Faults: []quota.Fault{quota.FaultCrash},
			Bounds: explore.Bounds{MaxSchedules: 2_000}})
	if !errors.Is(err, explore.ErrUnseen) || c.Schedules != 2_000 || len(c.Withheld) != 1 ||
		c.Withheld[0].Code != string(witness.OwnGoroutine) {
		t.Errorf("%+v, %v", c, err)
	}
}

// The same limiters, as they should be, are claimed to be what they are.
func TestSeenWorkIsClaimed(t *testing.T) {
	var mu sync.Mutex
	for name, sel := range map[string]strategies.Selection{"redis": fixed(given, virtual, callers),
		"in process": inProcess(&mu, virtual)} {
		r, err := explore.Run(t.Context(), sel, explore.Config{Limit: 1})
		if err != nil || r.Claim == "" || len(r.Withheld) > 0 {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

func plantNeeding(take func(ctx context.Context, p *planted, r quota.Request) (quota.Decision,
	error)) strategies.Selection {
	s := plant(take)
	s.Needs = []strategies.Need{strategies.NeedRedis}
	return s
}

// inProcess counts in windows of an hour in memory.
func inProcess(mu *sync.Mutex, now func(env strategies.Env) time.Time) strategies.Selection {
	s := plant(nil)
	s.Kinds = []quota.Kind{quota.CalendarHour}
	s.Reset = strategies.ResetsWindow
	s.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		used := strategies.SharedValue(env.Shared, "used", func() map[int64]int64 { return map[int64]int64{} })
		return &planted{env: env, take: func(_ context.Context, p *planted, r quota.Request) (quota.Decision, error) {
			mu.Lock()
			defer mu.Unlock()
			at := now(p.env).Unix() / 3600
			if used[at]+r.Units > r.Policy.Limit {
				return verdict(false, nil)
			}
			used[at] += r.Units
			return verdict(true, nil)
		}}, nil
	}
	return s
}

// A panic of the strategy is the search's error, in one line, with the stack apart.
func TestPanics(t *testing.T) {
	boom := func(ctx context.Context, p *planted, _ quota.Request) (quota.Decision, error) {
		if n, err := strategies.Redis(p.env).Incr(ctx, "n").Result(); n > 1 || err != nil {
			panic(fmt.Sprintf("two\nlines %d", n))
		}
		return verdict(true, nil)
	}
	job := plant(once)
	job.Open = func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &planted{env: env, take: once,
			jobs: []strategies.Job{{Name: "sync", Every: time.Hour, Run: func(ctx context.Context) (bool, error) {
				strategies.Redis(env).Get(ctx, "k")
				panic("no job")
			}}}}, nil
	}
	open := plant(once)
	open.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { panic("not opened") }
	for name, c := range map[string]struct {
		sel  strategies.Selection
		want string
	}{
		"take": {plant(boom), "the strategy panics in B: two lines 2"},
		"job":  {job, "sync: no job"},
		"open": {open, "the strategy panics in being opened: not opened"},
	} {
		for kind, search := range map[string]func() error{
			"search": func() error { _, err := explore.Run(t.Context(), c.sel, explore.Config{Limit: 1}); return err },
			"census": func() error { _, err := explore.Enumerate(t.Context(), c.sel, explore.Config{Limit: 1}); return err },
		} {
			err := search()
			var p *explore.PanicError
			if !errors.As(err, &p) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s of %s: %v", kind, name, err)
				continue
			}
			if !strings.Contains(string(p.Stack), "unseen_test.go") {
				t.Errorf("%s of %s: the stack is not the strategy's: %s", kind, name, p.Stack)
			}
		}
	}
}
