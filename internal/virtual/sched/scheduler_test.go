package sched_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// increment is the lost update in its purest form: two commands, no atomicity.
func increment(w *world) func(ctx context.Context) {
	return func(ctx context.Context) {
		n, err := w.rdb.Get(ctx, "n").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			panic(err)
		}
		if err := w.rdb.Set(ctx, "n", n+1, 0).Err(); err != nil {
			panic(err)
		}
	}
}

// Three callers of two commands each have 6!/(2!2!2!) = 90 orders.
func TestTreeEnumeratesEveryOrder(t *testing.T) {
	w := newWorld(t)
	var tree sched.Tree
	orders := map[string]bool{}
	results := map[string]int{}
	for ok := true; ok; ok = tree.Next() {
		s := w.scheduler(sched.Config{})
		for i := range 3 {
			begin(s, strconv.Itoa(i), increment(w))
		}
		var order strings.Builder
		check(t, s.Run(func(ready []*sched.Actor) *sched.Actor {
			a := tree.Pick(ready)
			order.WriteString(a.Name)
			return a
		}))
		if len(tree.Path()) != 6 {
			t.Fatalf("order %s has path %v", order.String(), tree.Path())
		}
		orders[order.String()] = true
		results[w.get(t, "n")]++
	}
	check(t, tree.Err())
	if len(orders) != 90 {
		t.Errorf("%d orders, want 90", len(orders))
	}
	// Only the 3! serial orders count to 3, by hand.
	if results["3"] != 6 || results["1"] == 0 || results["1"]+results["2"]+results["3"] != 90 {
		t.Errorf("final values %v, want 6 times 3 and the rest less", results)
	}
}

// The share grows with every sequence, from none to all but the last.
func TestTreeTellsItsShare(t *testing.T) {
	var tree sched.Tree
	var shares []float64
	for ok := true; ok; ok = tree.Next() {
		if tree.Choose(2) == 1 {
			tree.Choose(4)
		}
		shares = append(shares, tree.Share())
	}
	if want := []float64{0, 0.5, 0.625, 0.75, 0.875}; !slices.Equal(shares, want) {
		t.Errorf("shares %v, want %v", shares, want)
	}
}

func TestTreeNoticesNondeterminism(t *testing.T) {
	for name, width := range map[string]func(run int) []int{
		"width":   func(run int) []int { return []int{2 + run, 2} },
		"shorter": func(run int) []int { return []int{2, 2}[:2-min(run, 1)*2] },
	} {
		var tree sched.Tree
		for run := range 9 {
			for _, n := range width(run) {
				tree.Choose(n)
			}
			if !tree.Next() {
				break
			}
		}
		if tree.Err() == nil {
			t.Errorf("%s: nothing noticed", name)
		}
	}
}

func TestStepsOfPipelines(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name  string
		split bool
		body  func(ctx context.Context) error
		want  []string
	}{
		{"plain", false, func(ctx context.Context) error {
			_, err := w.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Incr(ctx, "a")
				p.Expire(ctx, "a", time.Minute)
				return nil
			})
			return err
		}, []string{"start", "INCR a [1/2]", "EXPIRE a 60 [2/2]"}},
		{"plain, split", true, func(ctx context.Context) error {
			_, err := w.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Incr(ctx, "a")
				p.Incr(ctx, "a")
				return nil
			})
			return err
		}, []string{"start", "INCR a [1/2]", "INCR a [2/2]", "reply to INCR a [2/2]"}},
		{"transaction", false, func(ctx context.Context) error {
			var n *redis.IntCmd
			_, err := w.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Incr(ctx, "a")
				n = p.Incr(ctx, "a")
				return nil
			})
			if err == nil && n.Val() != 2 {
				err = fmt.Errorf("second INCR gave %d", n.Val())
			}
			return err
		}, []string{"start", "MULTI; INCR a; INCR a; EXEC"}},
		{"single, split", true, func(ctx context.Context) error {
			return w.rdb.Incr(ctx, "a").Err()
		}, []string{"start", "INCR a", "reply to INCR a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			s := w.scheduler(sched.Config{SplitReplies: c.split, Observe: func(e *sched.Event) {
				got = append(got, e.Op.String())
			}})
			err := errors.New("did not finish")
			s.Go("a", func(ctx context.Context) { err = c.body(ctx) })
			check(t, s.Run(first))
			check(t, err)
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("steps %q, want %q", got, c.want)
			}
		})
	}
}

// A pipeline's second command must see what others did after its first.
func TestPipelineInterleavesTransactionDoesNot(t *testing.T) {
	w := newWorld(t)
	for _, tx := range []bool{false, true} {
		s := w.scheduler(sched.Config{})
		var last *redis.IntCmd
		a := begin(s, "a", func(ctx context.Context) {
			pipe := w.rdb.Pipeline()
			if tx {
				pipe = w.rdb.TxPipeline()
			}
			pipe.Incr(ctx, "n")
			last = pipe.Incr(ctx, "n")
			_, _ = pipe.Exec(ctx)
		})
		b := begin(s, "b", func(ctx context.Context) { w.rdb.IncrBy(ctx, "n", 10) })
		s.Step(a)
		s.Step(b)
		if !tx {
			s.Step(a)
		}
		if want := map[bool]int64{false: 12, true: 2}[tx]; last.Val() != want || !a.Done() {
			t.Errorf("transaction %v: second increment gave %d, want %d", tx, last.Val(), want)
		}
	}
}

var errGone = errors.New("connection refused")

func TestFaultsOfACommand(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name   string
		steps  func(s *sched.Scheduler, a *sched.Actor)
		stored string
		err    error
		ended  bool // the caller got an answer
	}{
		{"refused", func(s *sched.Scheduler, a *sched.Actor) { s.Fail(a, errGone) }, "", errGone, true},
		{"reply lost", func(s *sched.Scheduler, a *sched.Actor) { s.Step(a); s.Fail(a, errGone) }, "1", errGone, true},
		{"killed before", func(s *sched.Scheduler, a *sched.Actor) { s.Kill(a) }, "", nil, false},
		{"killed after", func(s *sched.Scheduler, a *sched.Actor) { s.Step(a); s.Kill(a) }, "1", nil, false},
		{"fine", func(s *sched.Scheduler, a *sched.Actor) { s.Step(a); s.Step(a) }, "1", nil, true},
	} {
		for _, form := range []string{"single", "plain", "transaction"} {
			t.Run(c.name+"/"+form, func(t *testing.T) {
				s := w.scheduler(sched.Config{SplitReplies: true})
				var err, own error
				ended := false
				a := begin(s, "a", func(ctx context.Context) {
					defer w.rdb.Set(ctx, "undone", 1, 0) // a dead process undoes nothing
					switch form {
					case "single":
						cmd := w.rdb.Incr(ctx, "n")
						err, own = cmd.Err(), cmd.Err()
					default:
						pipe := w.rdb.Pipeline()
						if form == "transaction" {
							pipe = w.rdb.TxPipeline()
						}
						cmd := pipe.Incr(ctx, "n")
						_, err = pipe.Exec(ctx)
						own = cmd.Err()
					}
					ended = true
				})
				c.steps(s, a)
				if !a.Done() {
					check(t, s.Run(first))
				}
				if got := w.get(t, "n"); got != c.stored {
					t.Errorf("stored %q, want %q", got, c.stored)
				}
				if !errors.Is(err, c.err) || !errors.Is(own, c.err) || ended != c.ended {
					t.Errorf("error %v, command's %v, ended %v; want %v, %v", err, own, ended, c.err, c.ended)
				}
				if undone := w.get(t, "undone") != ""; undone != c.ended {
					t.Errorf("deferred command ran: %v", undone)
				}
			})
		}
	}
}

// The replies of a pipeline arrive together, and are lost together; a command
// that was refused is alone with its error.
func TestFaultsOfAPipeline(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name  string
		steps func(s *sched.Scheduler, a *sched.Actor)
		want  string
		n     string
	}{
		{"first refused", func(s *sched.Scheduler, a *sched.Actor) {
			s.Fail(a, errGone)
			s.Step(a)
			s.Step(a)
		}, "connection refused, <nil>", "10"},
		{"second refused", func(s *sched.Scheduler, a *sched.Actor) {
			s.Step(a)
			s.Fail(a, errGone)
		}, "<nil>, connection refused", "1"},
		{"replies lost", func(s *sched.Scheduler, a *sched.Actor) {
			s.Step(a)
			s.Step(a)
			s.Fail(a, errGone)
		}, "connection refused, connection refused", "11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := w.scheduler(sched.Config{SplitReplies: true})
			defer s.Close()
			got := ""
			a := begin(s, "a", func(ctx context.Context) {
				pipe := w.rdb.Pipeline()
				one := pipe.Incr(ctx, "n")
				two := pipe.IncrBy(ctx, "n", 10)
				if _, err := pipe.Exec(ctx); !errors.Is(err, errGone) {
					t.Errorf("the pipeline's error is %v", err)
				}
				got = fmt.Sprintf("%v, %v", one.Err(), two.Err())
			})
			c.steps(s, a)
			if got != c.want || w.get(t, "n") != c.n || !a.Done() {
				t.Errorf("errors %s with n=%s, want %s with n=%s", got, w.get(t, "n"), c.want, c.n)
			}
		})
	}
}

func TestStatementOfAModelParks(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	model := strategies.NewModel(sched.Statement)
	row := 0
	body := func(ctx context.Context) {
		read := 0
		_ = model.Do(ctx, "SELECT used", func() error { read = row; return nil })
		_ = model.Do(ctx, "UPDATE used", func() error { row = read + 1; return nil })
	}
	a := begin(s, "a", body)
	b := begin(s, "b", body)
	if got := a.Op(); got.Kind != sched.SQL || got.String() != "SELECT used" {
		t.Fatalf("parked at %v", got)
	}
	for _, x := range []*sched.Actor{a, b, a, b} {
		s.Step(x)
	}
	if row != 1 {
		t.Errorf("row is %d: the update that should be lost was not", row)
	}
	check(t, model.Do(context.Background(), "outside", func() error { return nil }))
}

// The first command of a client dials and greets the server; only the command
// itself is a step.
func TestDiallingIsInsideTheStep(t *testing.T) {
	w := newWorld(t)
	s := w.scheduler(sched.Config{})
	var ops []string
	s.Go("a", func(ctx context.Context) {
		fresh := w.client()
		defer fresh.Close() //nolint:errcheck // nothing is written any more
		ops = append(ops, fresh.Ping(ctx).Val())
	})
	check(t, s.Run(first))
	if s.Stepped() != 2 || len(ops) != 1 || ops[0] != "PONG" {
		t.Errorf("%d steps, replies %v; want start and PING", s.Stepped(), ops)
	}
}

func TestCommandsOutsideOfActorsPass(t *testing.T) {
	w := newWorld(t)
	s := w.scheduler(sched.Config{})
	begin(s, "a", increment(w))
	if n := w.rdb.Incr(context.Background(), "n").Val(); n != 1 {
		t.Errorf("INCR from outside gave %d", n)
	}
	s.Close()
}

func TestCloseLeavesNoCoroutine(t *testing.T) {
	w := newWorld(t)
	w.get(t, "dial") // the connection's goroutines are not what is counted
	before := runtime.NumGoroutine()
	s := w.scheduler(sched.Config{})
	for range 20 {
		begin(s, "a", increment(w))
		s.Go("b", increment(w))
	}
	s.NewJobs("").Start([]strategies.Job{{Name: "j", Every: time.Hour, Run: func(context.Context) (bool, error) {
		return false, nil
	}}})
	s.Close()
	if n := len(s.Alive(nil)); n != 0 {
		t.Errorf("%d actors alive", n)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestMisuseIsLoud(t *testing.T) {
	w := newWorld(t)
	for name, f := range map[string]func(s *sched.Scheduler){
		"step of a done actor": func(s *sched.Scheduler) {
			a := begin(s, "a", func(context.Context) {})
			s.Step(a)
		},
		"step of a sleeper": func(s *sched.Scheduler) {
			a := begin(s, "a", func(ctx context.Context) { _ = s.Clock(0).Sleep(ctx, time.Second) })
			s.Step(a)
		},
		"failing what cannot fail": func(s *sched.Scheduler) { s.Fail(s.Go("a", func(context.Context) {}), errGone) },
		"another actor's context": func(s *sched.Scheduler) {
			var stolen context.Context
			begin(s, "a", func(ctx context.Context) { stolen = ctx; increment(w)(ctx) })
			begin(s, "b", func(context.Context) { increment(w)(stolen) })
		},
		"stepping from inside": func(s *sched.Scheduler) {
			b := s.Go("b", func(context.Context) {})
			begin(s, "a", func(context.Context) { s.Step(b) })
		},
		"unlocking what is not locked": func(s *sched.Scheduler) { s.Clock(0).NewMutex().Unlock() },
		"running time backwards":       func(s *sched.Scheduler) { s.Advance(-1) },
		"a strategy's own panic":       func(s *sched.Scheduler) { begin(s, "a", func(context.Context) { panic("bug") }) },
	} {
		t.Run(name, func(t *testing.T) {
			s := w.scheduler(sched.Config{})
			defer s.Close()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(s)
		})
	}
}

// A tree that is parted has all sequences once, in their order, whenever that happens.
func TestTreeRest(t *testing.T) {
	run := func(tree *sched.Tree) string { // the second choice decides how many follow
		a := tree.Choose(3)
		b := tree.Choose(2 + a)
		for range b {
			tree.Choose(2)
		}
		return fmt.Sprint(tree.Path())
	}
	var all []string
	whole := new(sched.Tree)
	for ok := true; ok; ok = whole.Next() {
		all = append(all, run(whole))
	}
	if len(all) != 3+7+15 {
		t.Fatalf("%d sequences", len(all))
	}
	for each := 1; each <= len(all); each++ {
		var got []string
		queue := []*sched.Tree{new(sched.Tree)}
		for len(queue) > 0 {
			tree := queue[0].Clone()
			queue = queue[1:]
			more := true
			for n := 0; more && n < each; n++ {
				got = append(got, run(tree))
				more = tree.Next()
			}
			if more {
				queue = append(tree.Rest(), queue...)
			}
			if err := tree.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, all) {
			t.Fatalf("parted after each %d: %v, want %v", each, got, all)
		}
	}
}
