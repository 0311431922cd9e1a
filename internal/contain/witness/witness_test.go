package witness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

type callKey struct{}

var (
	real    = time.Date(2031, time.March, 3, 12, 0, 0, 123456789, time.UTC)
	virtual = time.Date(2015, time.November, 20, 10, 30, 0, 0, time.UTC)
	call    = context.WithValue(context.Background(), callKey{}, true)
)

// watched is a witness and a client of a store in this process.
func watched(t *testing.T, needsStore bool) (*witness.Witness, *redis.Client) {
	w := witness.New(witness.Config{
		NeedsStore: needsStore, Real: real, Virtual: virtual,
		Caller: func(ctx context.Context) bool { return ctx.Value(callKey{}) != nil },
	})
	table := fakeredis.New()
	c := fakeredis.Client(table)
	c.AddHook(w.RedisHook())
	t.Cleanup(func() { _ = c.Close(); table.Close() })
	return w, c
}

func codes(w *witness.Witness) []witness.Code {
	var out []witness.Code
	for _, r := range w.Reasons() {
		out = append(out, r.Code)
	}
	return out
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		name string
		use  func(w *witness.Witness, c *redis.Client)
		want []witness.Code
	}{
		{"all is seen", func(w *witness.Witness, c *redis.Client) {
			c.Incr(call, "k")
			w.Taken(nil)
			w.Taken(errors.New("one fails"))
		}, nil},
		{"no command", func(w *witness.Witness, _ *redis.Client) { w.Taken(nil) }, []witness.Code{witness.NoCommand}},
		{"nothing was asked", func(*witness.Witness, *redis.Client) {}, nil},
		{"all fail", func(w *witness.Witness, c *redis.Client) {
			c.Incr(call, "k")
			w.Taken(errors.New("no"))
		}, []witness.Code{witness.AllFailed}},
		{"lost context", func(w *witness.Witness, c *redis.Client) {
			c.Incr(context.Background(), "k")
			c.Incr(context.Background(), "k")
			w.Taken(nil)
		}, []witness.Code{witness.ContextLost}},
		{"lost in a pipeline, with the time", func(w *witness.Witness, c *redis.Client) {
			p := c.Pipeline()
			p.Incr(context.Background(), "k")
			p.Set(context.Background(), "at", real.Unix(), 0)
			_, _ = p.Exec(context.Background())
			w.Taken(nil)
		}, []witness.Code{witness.ContextLost, witness.WallClock}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, client := watched(t, true)
			c.use(w, client)
			if got := codes(w); !slices.Equal(got, c.want) {
				t.Errorf("reasons %v, want %v", w.Reasons(), c.want)
			}
		})
	}
}

func TestTimestamps(t *testing.T) {
	ns := real.UnixNano()
	month := int64(30 * 24 * time.Hour)
	for _, c := range []struct {
		arg  any
		want bool
	}{
		{ns / 1e9, true}, {ns / 1e6, true}, {ns / 1e3, true}, {ns, true},
		{(ns + month) / 1e6, true}, {(ns - month) / 1e9, true},
		{fmt.Sprint(ns / 1e6), true}, {[]byte(fmt.Sprint(ns)), true}, {fmt.Sprintf("%.6f", float64(ns)/1e9), true},
		{fmt.Sprintf("rl:user:%d", ns/1e9), true}, {fmt.Sprintf("rl:%d:x", ns/60e9), true},
		{fmt.Sprintf("w%d", ns/3600e9), true}, {ns / 60e9, true},
		{float64(ns) / 1e9, true}, {real, true}, {fmt.Sprint(float64(ns)), true},
		{virtual.Unix(), false}, {virtual.UnixMilli(), false}, {virtual.UnixNano(), false}, {virtual, false},
		{int64(100), false}, {"user:1630000000", false}, {fmt.Sprintf("w%d", virtual.Unix()/3600), false},
		{"quota:tenant-uploads:s:used:2015-11", false}, {"e0b1c2d3a4f5968778695a4b3c2d1e0f12345678", false}, {"", false},
		{int64(1) << 40, false}, {"2015-11-20", false},
		{(ns + 3*month) / 1e6, false}, {int64(-5), false}, {"99999999999999999999", false}, {true, false},
	} {
		w, client := watched(t, false)
		client.Do(call, "set", "k", c.arg)
		if got := len(w.Reasons()) > 0; got != c.want {
			t.Errorf("%T %v is a timestamp: %v, want %v", c.arg, c.arg, got, c.want)
		}
	}
}

// If virtual time is the wall clock's, its timestamps are what they should be.
func TestNoTimestampsInRealTime(t *testing.T) {
	w := witness.New(witness.Config{Real: real, Virtual: real.Add(-24 * time.Hour)})
	w.Statement(t.Context(), "INSERT INTO t VALUES ($1)", []any{real.Unix()})
	if len(w.Reasons()) > 0 || w.Seen() != 1 {
		t.Errorf("reasons %v of %d statements", w.Reasons(), w.Seen())
	}
}

// A key may end in the real month or date, as text.
func TestTimeAsText(t *testing.T) {
	for key, noted := range map[string]bool{
		"used:" + real.UTC().Format(time.RFC3339): true, "used:" + real.UTC().Format("2006-01"): true,
		"used:" + virtual.UTC().Format(time.RFC3339): false, "user-7-11": false,
	} {
		w := witness.New(witness.Config{Real: real, Virtual: virtual})
		w.Statement(t.Context(), "INSERT INTO t VALUES ($1)", []any{key})
		if got := w.Reasons(); len(got) > 0 != noted {
			t.Errorf("%s: %v", key, got)
		}
	}
}

func TestStatement(t *testing.T) {
	w := witness.New(witness.Config{Real: real, Virtual: virtual})
	w.Statement(t.Context(), "\n INSERT INTO t VALUES ($1)", []any{real})
	if got := w.Reasons(); len(got) != 1 || got[0].Code != witness.WallClock {
		t.Errorf("reasons %v", got)
	}
	var none *witness.Witness
	none.Taken(nil)
	none.Note(witness.NeverAgain, "")
	if none.Reasons() != nil {
		t.Error("nothing watches, and something is seen")
	}
}

// TestLifeOfAKey: a number that would be the wall clock's seconds is none if a
// command says how long a key lives, and is one otherwise.
func TestLifeOfAKey(t *testing.T) {
	n := real.Unix()
	for _, tc := range []struct {
		args []any
		want bool
	}{
		{[]any{"set", "k", 1, "px", n}, false},
		{[]any{"SET", "k", 1, "NX", "EX", n}, false},
		{[]any{"pexpire", "k", n}, false},
		{[]any{"psetex", "k", n, 1}, false},
		{[]any{"psetex", "k", 1, n}, true},
		{[]any{"set", "k", n, "px", 1}, true},
		{[]any{"pexpireat", "k", n}, true},
		{[]any{"expire", n}, true},
	} {
		w := witness.New(witness.Config{Real: real, Virtual: virtual})
		w.Command(call, "a command", tc.args)
		if got := w.Noted(witness.WallClock); got != tc.want {
			t.Errorf("%v: noted %t, want %t", tc.args, got, tc.want)
		}
	}
}

// TestSample: of commands beyond the given number, the sixteenth is looked at.
func TestSample(t *testing.T) {
	for n, want := range map[int]bool{1: true, 3: true, 4: false, 15: false, 16: true, 17: false} {
		w := witness.New(witness.Config{Real: real, Virtual: virtual, AllUntil: 3})
		for i := 1; i <= n; i++ {
			arg := any("x")
			if i == n {
				arg = real.Unix()
			}
			w.Command(call, "set", []any{arg})
		}
		if got := w.Noted(witness.WallClock); got != want {
			t.Errorf("the wall clock's time in command %d: noted %t, want %t", n, got, want)
		}
	}
}

// A store on the wall clock tells its time. What a strategy sends after that may be the
// store's, and what it sent before was its own.
func TestToldByTheStore(t *testing.T) {
	for _, first := range []bool{true, false} {
		for name, ask := range map[string]func(*redis.Client){
			"TIME":  func(c *redis.Client) { c.Time(call) },
			"value": func(c *redis.Client) { c.Get(call, "left-by-a-script") },
			"script": func(c *redis.Client) {
				p := c.Pipeline()
				p.Eval(call, "return {redis.call('TIME'), 1}", nil)
				_, _ = p.Exec(call)
			},
		} {
			table := fakeredis.New()
			table.SetNow(real.UnixNano())
			table.Do([]string{"set", "left-by-a-script", fmt.Sprint(real.UnixNano())})
			c := fakeredis.Client(table)
			w := witness.New(witness.Config{Real: real, Virtual: virtual})
			c.AddHook(w.RedisHook())
			if first {
				ask(c)
			}
			c.Set(call, "k", real.UnixNano(), 0)
			ask(c)
			if got := w.Noted(witness.WallClock); got == first || !w.Told() {
				t.Errorf("%s first %t: noted %t, told %t", name, first, got, w.Told())
			}
			_ = c.Close()
			table.Close()
		}
	}
}
