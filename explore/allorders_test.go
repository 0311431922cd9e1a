package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/inproc"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// scorer is a limiter at random: its callers send commands and change their instance's memory by what is answered. They
// are admitted by a number that depends on the order of all that. Each asks for another number of units, which is that
// of its program, so that none can take the place of another.
type scorer struct {
	env      strategies.Env
	programs [][]plantedOp
	salt     uint64
	score    int64
	// box is where the score is instead; nil for nowhere else.
	box box
	// works is set if the last program is that of a job.
	works bool
}

// opened are the instances of a run.
type opened struct {
	list  []*scorer
	works bool // the instances have a job
}

func (s *scorer) Close(context.Context) error { return nil }

// lives are those of keys; 0 has none.
var lives = [...]time.Duration{0, 10 * time.Minute, 50 * time.Minute, 2 * time.Hour}

// Take implements [strategies.Strategy].
func (s *scorer) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	got, err := s.runs(ctx, s.programs[r.Units-1])
	if err != nil {
		return quota.Decision{}, err
	}
	n := uint64(s.change(func(score int64) int64 { return score })*31+got) ^ s.salt
	return quota.Decision{Admitted: n*0x9E3779B97F4A7C15>>61 < 3, Tier: quota.TierRedis}, nil
}

// runs carries out a program.
func (s *scorer) runs(ctx context.Context, program []plantedOp) (got int64, err error) {
	for _, op := range program {
		got, err = s.does(ctx, op, got)
		if err != nil {
			break
		}
	}
	return got, err
}

// Jobs implements [strategies.Jobber].
func (s *scorer) Jobs() []strategies.Job {
	if !s.works {
		return nil
	}
	return []strategies.Job{{Name: "job", Every: time.Minute, Run: func(ctx context.Context) (bool, error) {
		_, err := s.runs(ctx, s.programs[len(s.programs)-1])
		return false, err
	}}}
}

// change changes the score, wherever it is.
func (s *scorer) change(add func(int64) int64) int64 {
	if s.box != nil {
		return s.box.change(add)
	}
	s.score = add(s.score)
	return s.score
}

// does carries out one operation of a program. got is what the one before was answered.
func (s *scorer) does(ctx context.Context, op plantedOp, got int64) (int64, error) {
	rdb := strategies.Redis(s.env)
	key := fmt.Sprintf("k%d", op.key%2)
	switch op.what {
	case 0:
		n, err := rdb.Get(ctx, key).Int64()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return n, err
	case 1:
		return rdb.Incr(ctx, key).Result()
	case 2:
		ok, err := rdb.SetNX(ctx, key, 1, lives[op.key%len(lives)]).Result()
		if ok {
			got++
		}
		return got, err
	case 3:
		return got, rdb.PExpire(ctx, key, lives[1+op.key%3]).Err()
	case 4:
		return s.change(func(score int64) int64 { return score*2 + got + 1 }), nil
	case 5:
		return s.change(func(score int64) int64 { return score*3 + got }), nil
	case 6:
		return s.change(func(int64) int64 { return int64(op.key) }), nil
	case 7:
		return s.change(func(score int64) int64 { return score }), nil
	default:
		return rdb.Del(ctx, key).Result()
	}
}

// score makes one: so many programs of so many commands, and a change of memory after each or now and then.
func score(r *rand.Rand, programs, commands int, remembers bool, open func() box) (strategies.Selection, *opened) {
	s := scorer{salt: r.Uint64()}
	of := &opened{} // which no instance reaches
	for range programs {
		var ops []plantedOp
		for range commands {
			ops = append(ops, plantedOp{[]int{0, 1, 1, 2, 3, 3, 8}[r.IntN(7)], r.IntN(12)})
			if remembers && r.IntN(3) > 0 {
				ops = append(ops, plantedOp{4 + r.IntN(4), r.IntN(3)})
			}
		}
		s.programs = append(s.programs, ops)
	}
	return strategies.Selection{Meta: &strategies.Meta{
		Name: "scorer", Doc: "decides at random", Form: strategies.Baseline, Counts: quota.CountsNothing,
		Kinds: []quota.Kind{quota.CalendarHour}, Reset: strategies.ResetsMissing,
		Needs: []strategies.Need{strategies.NeedRedis},
		Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
			one := s
			one.works = of.works
			one.env = env
			if env.Instance == 0 {
				of.list = of.list[:0]
			}
			of.list = append(of.list, &one)
			if open != nil {
				one.box = open()
			}
			return &one, nil
		},
	}}, of
}

// unlike are scripts of so many clients.
func unlike(clients int) (out []Script) {
	for i := range clients {
		out = append(out, Script{{Kind: Take, Units: int64(i + 1)}})
	}
	return out
}

// ends are the ends that schedules come to: what callers were told and in which order, what instances remember, and for
// how long keys live. broken are the properties that are broken on the way, with the fewest steps.
type ends struct {
	met    map[string]bool
	broken map[Property]int
	opened *opened
}

// note notes the end of a run, if it has come to one.
func (x *ends) note(e engine.Engine) error {
	if len(e.Common().Enabled(nil, false)) > 0 {
		return nil
	}
	type told struct {
		at   int64
		what string
	}
	var order []told
	for _, ev := range e.Common().Run.Truth.Events() {
		order = append(order, told{ev.Call, fmt.Sprint("asks for ", ev.Units)},
			told{ev.Reply, fmt.Sprint(ev.Outcome, " ", ev.Units)})
	}
	slices.SortStableFunc(order, func(a, b told) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, o := range order {
		b.WriteString(o.what + ", ")
	}
	for _, s := range x.opened.list {
		fmt.Fprint(&b, s.change(func(score int64) int64 { return score }), " ")
	}
	held, err := e.Holdings()
	fmt.Fprint(&b, held)
	x.met[b.String()] = true
	return err
}

// watchedEngine is an engine whose ends are noted.
type watchedEngine struct {
	*inproc.Engine
	ends *ends
}

// State implements [engine.Engine].
func (e watchedEngine) State() (engine.Digest, error) {
	if err := e.ends.note(e.Engine); err != nil {
		return engine.Digest{}, err
	}
	return e.Engine.State()
}

// allSchedules runs every schedule of a strategy, whatever states it leads to.
func allSchedules(t *testing.T, sel strategies.Selection, cfg Config, x *ends) (schedules int) {
	t.Helper()
	x.met = map[string]bool{}
	x.broken = map[Property]int{}
	_, err := explored(t.Context(), sel, cfg, func(s *search) (any, error) {
		if err := s.serially(); err != nil {
			return nil, err
		}
		wanted := map[Property]bool{}
		for _, p := range cfg.Properties {
			wanted[p] = true
		}
		var all func(path []engine.Choice) error
		all = func(path []engine.Choice) error {
			if err := s.goTo(path); err != nil {
				return err
			}
			found, err := s.check(wanted)
			if err != nil {
				return err
			}
			for _, b := range found {
				if n, ok := x.broken[b.Property]; !ok || len(path) < n {
					x.broken[b.Property] = len(path)
				}
			}
			next := s.Enabled(nil, false)
			if len(next) == 0 {
				schedules++
				return x.note(s.Engine)
			}
			for _, c := range next {
				if err := all(append(path[:len(path):len(path)], c)); err != nil {
					return err
				}
			}
			return nil
		}
		return nil, errors.Join(all(nil), s.End())
	})
	if err != nil {
		t.Fatal(err)
	}
	return schedules
}

// allStates searches, until all states are known, and notes the ends.
func allStates(t *testing.T, sel strategies.Selection, cfg Config, x *ends) {
	t.Helper()
	x.met = map[string]bool{}
	x.broken = map[Property]int{}
	_, err := explored(t.Context(), sel, cfg, func(s *search) (any, error) {
		s.Engine = watchedEngine{s.Engine.(*inproc.Engine), x}
		if err := s.serially(); err != nil {
			return nil, err
		}
		w := &stateSearch{search: s, res: s.newResult()}
		for _, p := range append([]Property{Stuck}, cfg.Properties...) { // of which nobody is
			s.wanted[p] = true
		}
		err := w.walk(t.Context(), 0)
		for _, b := range w.broken {
			x.broken[b.Property] = len(b.path)
		}
		return nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameAsAll checks a search against all schedules.
func sameAsAll(t *testing.T, sel strategies.Selection, of *opened, cfg Config) (schedules int, leaks bool) {
	t.Helper()
	cfg.Properties = []Property{Leak, FalseReject}
	cfg.Asks = -1
	cfg.Workers = 1
	cfg, err := cfg.Complete(sel)
	if err != nil {
		t.Fatal(err)
	}
	all := ends{opened: of}
	met := ends{opened: of}
	schedules = allSchedules(t, sel, cfg, &all)
	allStates(t, sel, cfg, &met)
	if !maps.Equal(met.broken, all.broken) {
		t.Errorf("a search finds %v, and all schedules %v", met.broken, all.broken)
	}
	if !maps.Equal(met.met, all.met) {
		t.Errorf("a search comes to %d ends, and all schedules to %d", len(met.met), len(all.met))
	}
	return schedules, all.broken[Leak] > 0
}

// A search comes to the same ends as running every schedule, and finds the same in as many steps: of programs whose
// answers depend on memory that callers share, on the order in which they are answered, and on when keys expire.
func TestSearchesAgreeWithAllSchedules(t *testing.T) {
	testenv.Sequential(t)
	clock := []quota.Fault{quota.FaultClock}
	lost := []quota.Fault{quota.FaultLostReply}
	for name, c := range map[string]struct {
		cfg              Config
		commands         int
		remembers, works bool
	}{
		"memory":  {Config{Clients: 2, Instances: 1, Limit: 2}, 2, true, false},
		"three":   {Config{Clients: 3, Instances: 1, Limit: 4}, 1, true, false},
		"answers": {Config{Clients: 3, Limit: 4}, 2, false, false},
		"expiry":  {Config{Clients: 2, Limit: 2, Faults: clock}, 1, false, false},
		"expires": {Config{Clients: 2, Instances: 1, Limit: 2, Scope: Scope{Passes: true}}, 2, true, false},
		"lost":    {Config{Clients: 2, Instances: 1, Limit: 2, Faults: lost}, 1, true, false},
		"budgets": {Config{Clients: 2, Limit: 2, Faults: []quota.Fault{quota.FaultLostReply, quota.FaultOutage}}, 1, false,
			false},
		"evicted": {Config{Clients: 2, Limit: 2, Faults: []quota.Fault{quota.FaultEviction}}, 2, false, false},
		"job":     {Config{Clients: 1, Limit: 2}, 2, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			schedules := 0
			leaking := 0
			for seed := range testenv.Pick[uint64](2, 8) {
				r := rand.New(rand.NewPCG(seed, 28)) //nolint:gosec // has to repeat
				sel, of := score(r, c.cfg.Clients+b2i(c.works), c.commands, c.remembers, nil)
				of.works = c.works
				c.cfg.Scripts = unlike(c.cfg.Clients)
				n, leaks := sameAsAll(t, sel, of, c.cfg)
				schedules = schedules + n
				leaking = leaking + b2i(leaks)
			}
			t.Logf("%d schedules, %d programs leak", schedules, leaking)
		})
	}
}

// box keeps a number if a hash of memory has to look for it, or cannot look.
type box interface {
	change(by func(int64) int64) int64
}

type (
	closureBox func(by func(int64) int64) int64
	fieldBox   struct{ n int64 }
	mapBox     struct{ m sync.Map }
	channelBox struct{ c chan int64 }
	commandBox struct{ cmd *redis.IntCmd }
)

func (x closureBox) change(by func(int64) int64) int64 { return x(by) }

func (x *fieldBox) change(by func(int64) int64) int64 { x.n = by(x.n); return x.n }

func (x *mapBox) change(by func(int64) int64) int64 {
	old, _ := x.m.LoadOrStore("n", int64(0))
	n := by(old.(int64))
	x.m.Store("n", n)
	return n
}

func (x *channelBox) change(by func(int64) int64) int64 {
	n := by(<-x.c)
	x.c <- n
	return n
}

func (x *commandBox) change(by func(int64) int64) int64 {
	n := by(x.cmd.Val())
	x.cmd.SetVal(n)
	return n
}

var boxes = map[string]func() box{
	"pointer": func() box { return new(fieldBox) },
	"closure": func() box {
		n := int64(0)
		return closureBox(func(by func(int64) int64) int64 { n = by(n); return n })
	},
	"sync.Map": func() box { return &mapBox{} },
	"channel": func() box {
		x := &channelBox{make(chan int64, 1)}
		x.c <- 0
		return x
	},
	"command": func() box { return &commandBox{redis.NewIntResult(0, nil)} },
}

// The same, of programs whose memory is where a hash does not see it: with one instance, with one for each caller, and
// with memory that instances have in common.
func TestHiddenMemoryAgreesWithAllSchedules(t *testing.T) {
	testenv.Sequential(t)
	for name, open := range boxes {
		for _, instances := range []int{1, 2} {
			t.Run(fmt.Sprint(name, instances), func(t *testing.T) {
				for seed := range testenv.Pick[uint64](2, 6) {
					makes := open
					if instances > 1 { // made by whoever is opened first in a run
						var one box
						opened := 0
						makes = func() box {
							opened++
							if opened%instances == 1 {
								one = open()
							}
							return one
						}
					}
					cfg := Config{Clients: 2, Instances: instances, Limit: 2, Scripts: unlike(2)}
					sel, of := score(rand.New(rand.NewPCG(seed, 29)), 2, 2, true, makes) //nolint:gosec // has to repeat
					sameAsAll(t, sel, of, cfg)
				}
			})
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
