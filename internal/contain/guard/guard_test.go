package guard_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// never is longer than any test takes. A test waits for a limit in virtual time: the call has come as far as it can.
const never = time.Hour

var errOwn = errors.New("its own error")

// hang waits until the test ends, whatever its context says.
func hang(t *testing.T) func(context.Context) (int, error) {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return func(context.Context) (int, error) {
		<-ended
		return 0, nil
	}
}

func obeys(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 5, errOwn
}

// calls are [guard.Ask] without a deadline and with one, and [guard.Within].
var calls = map[string]func(ctx context.Context, f func(context.Context) (int, error)) (int, error){
	"ask": func(ctx context.Context, f func(context.Context) (int, error)) (int, error) {
		return guard.Ask(ctx, 0, "caller 3", f)
	},
	"ask with a deadline": func(ctx context.Context, f func(context.Context) (int, error)) (int, error) {
		return guard.Ask(ctx, never, "caller 3", f)
	},
	"within": func(ctx context.Context, f func(context.Context) (int, error)) (int, error) {
		return guard.Within(ctx, 0, never, "caller 3", f)
	},
}

func TestCallsThatReturn(t *testing.T) {
	for name, call := range calls {
		got, err := call(t.Context(), func(context.Context) (int, error) { return 7, errOwn })
		if got != 7 || !errors.Is(err, errOwn) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

func TestPanics(t *testing.T) {
	for name, call := range calls {
		_, err := call(t.Context(), func(context.Context) (int, error) { panic("no\n  quota") })
		var panicked *guard.PanicError
		if !errors.As(err, &panicked) || panicked.Where != "caller 3" || panicked.Value != "no\n  quota" ||
			!strings.Contains(string(panicked.Stack), "TestPanics") {
			t.Errorf("%s: %+v", name, err)
			continue
		}
		if want := "the strategy panics in caller 3: no quota"; err.Error() != want {
			t.Errorf("%s: %q, want %q", name, err, want)
		}
	}
}

// TestGoroutineOfACall: a call without a deadline is made by its caller's goroutine, any other one by a goroutine of
// its own, which the call may end.
func TestGoroutineOfACall(t *testing.T) {
	for name, call := range calls {
		var made uint64
		_, err := call(t.Context(), func(context.Context) (int, error) {
			made = stacks.Current()
			return 0, nil
		})
		if same := made == stacks.Current(); err != nil || same != (name == "ask") {
			t.Errorf("%s: on the caller's goroutine: %t, %v", name, same, err)
		}
	}
	_, err := guard.Within(t.Context(), never, never, "a job", func(context.Context) (int, error) {
		runtime.Goexit()
		return 0, nil
	})
	var panicked *guard.PanicError
	if !errors.As(err, &panicked) || panicked.Value != "it ended its goroutine" {
		t.Errorf("%v", err)
	}
}

// TestContextOfACall: it is cancelled at the limit. The call's own result counts if it returns in its time of grace.
func TestContextOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, err := guard.Within(t.Context(), time.Millisecond, never, "caller 3", obeys); got != 5 ||
			!errors.Is(err, errOwn) {
			t.Errorf("after the limit: %d, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got, err := guard.Within(ctx, never, never, "caller 3", func(ctx context.Context) (int, error) {
			time.Sleep(100 * time.Millisecond)
			return 5, ctx.Err()
		})
		if got != 5 || !errors.Is(err, context.Canceled) {
			t.Errorf("after the run's end: %d, %v", got, err)
		}
		if got, err := guard.Within(ctx, never, time.Millisecond, "caller 3", hang(t)); got != 0 ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("a call that does not end with its run: %d, %v", got, err)
		}
	})
}

func TestHungCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := guard.Within(t.Context(), 2*time.Millisecond, time.Millisecond, "caller 3", hang(t))
		requireHung(t, err, "caller 3", "the strategy does not return in caller 3: given up after 3ms at guard_test.")
		_, err = guard.Ask(t.Context(), 2*time.Millisecond, "a job", hang(t))
		requireHung(t, err, "a job", "the strategy does not return in a job: given up after 3ms at guard_test.")
	})
}

func requireHung(t *testing.T, err error, where, text string) {
	t.Helper()
	var hung *guard.HungError
	if !errors.As(err, &hung) || hung.Where != where || !strings.Contains(hung.At, "[chan receive (durable)]") ||
		!strings.Contains(string(hung.Stack), "guard_test.hang") {
		t.Fatalf("%+v", err)
	}
	if !strings.HasPrefix(err.Error(), text) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q, want one line that begins with %q", err, text)
	}
}

func TestDeadlines(t *testing.T) {
	for deadline, want := range map[time.Duration]struct{ grace, once time.Duration }{
		0:                      {0, 0},
		100 * time.Millisecond: {50 * time.Millisecond, guard.LeastOnce},
		time.Minute:            {30 * time.Second, time.Minute},
	} {
		if grace, once := guard.Grace(deadline), guard.Once(deadline); grace != want.grace || once != want.once {
			t.Errorf("%v: %v and %v, want %+v", deadline, grace, once, want)
		}
	}
}

func TestStack(t *testing.T) {
	for want, err := range map[string]error{
		"a": &guard.PanicError{Stack: []byte("a")}, "b": &guard.HungError{Stack: []byte("b")},
		"c": &guard.DiedError{Stack: "c"}, "": errOwn,
	} {
		if got := guard.Stack(fmt.Errorf("round 1: %w", err)); got != want {
			t.Errorf("%T: %q", err, got)
		}
	}
}

func TestTextsOfHungCalls(t *testing.T) {
	for want, err := range map[string]guard.HungError{
		"the strategy does not return in virtual time: everything waits at f": {Where: "virtual time", At: "f"},
		"a call waits for a lock at f, and a call that waits for the store may hold it": {Where: "virtual time", At: "f",
			Held: true},
	} {
		if got := err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// watchdog gives up what is found at the same place five times in a row.
func watchdog() guard.Watchdog {
	return guard.Watchdog{Patience: time.Millisecond, Beat: new(sched.Beat), Around: []string{"guard_test.around"}}
}

func around(f func(context.Context) (int, error)) int {
	got, _ := f(context.Background())
	return got
}

func TestWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patient := watchdog()
		patient.Patience = never
		if got, err := guard.Watched(t.Context(), patient, func() int { return 7 }); got != 7 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		blocked := hang(t)
		_, err := guard.Watched(t.Context(), watchdog(), func() int { return around(blocked) })
		requireHung(t, err, "virtual time", "the strategy does not return in virtual time: given up after ")
	})
}

func TestPanicsPassThroughAWatchdog(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.HasPrefix(text, "no quota\n") || !strings.Contains(text, "PassThrough") {
			t.Errorf("%s", text)
		}
	}()
	_, err := guard.Watched(t.Context(), guard.Watchdog{Patience: never, Beat: new(sched.Beat)},
		func() int { panic("no quota") })
	t.Errorf("it returns %v", err)
}
