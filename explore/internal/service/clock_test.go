package service_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
)

func policy(t *testing.T, text string) quota.Policy {
	t.Helper()
	p, err := quota.ParsePolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The clock of a Redis in memory is moved: windows end and keys expire within a schedule, also between two commands.
// What a limiter gets wrong then is found and repeated by its token, and one that is right is not accused.
func TestRedisClockIsMoved(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	clock := []quota.Fault{quota.FaultClock}
	for _, c := range []struct {
		kind, policy string
		faults       []quota.Fault
		look         []explore.Property
		want         string
	}{
		{"set-incr", "1 request per first-request 1m", clock, []explore.Property{explore.TTL},
			"ttl: A set s 0 ex 60 nx = OK; clock 1m later: a key expires; A incr s = 1 admitted"},
		{"no-ttl", "1 request per first-request 1m", nil, []explore.Property{explore.FalseReject},
			"false-reject: A incr s = 1 admitted; clock 1m0.001s later: a window ends; B incr s = 2 rejected"},
		{"redis-time", "1 request per calendar hour", nil, []explore.Property{explore.Leak}, "leak: A evalsha"},
		{"redis-time", "1 request per fixed 1m", clock, nil, ""},
		{"lua", "1 request per first-request 1m", clock, nil, ""},
	} {
		t.Run(c.kind+" "+c.policy, func(t *testing.T) {
			t.Parallel()
			cfg := explore.Config{Policy: policy(t, c.policy), Faults: c.faults, Scope: explore.Scope{Passes: c.faults == nil},
				Properties: c.look}
			found, err := searched(t, c.kind, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(found); !strings.HasPrefix(got, c.want) || c.want == "" && (got != "" ||
				!strings.Contains(found.Claim, "whose own clock was not moved, with a Redis in memory")) {
				t.Errorf("found %q, want %q; claims %q", got, c.want, found.Claim)
			}
			if len(found.Findings) > 0 {
				replayed(t, c.kind, &found.Findings[0], explore.Target{})
				_, err := explore.Replay(t.Context(), found.Findings[0].Token, explore.Target{Redis: redisOf(t),
					Process: explore.Process{Service: "true"}})
				if err == nil || !strings.Contains(err.Error(), "the clock of a Redis server cannot be moved") {
					t.Errorf("repeated on a server: %v", err)
				}
			}
		})
	}
}

// What is given back in the next window is found by two requests of each client.
func TestRefundToTheNextWindow(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	take := explore.Script{{Kind: explore.Take, Units: 1}, {Kind: explore.Take, Units: 1}}
	found, err := searched(t, "refund", explore.Config{
		Policy: policy(t, "1 request per fixed 1m"), Faults: []quota.Fault{quota.FaultClock},
		Properties: []explore.Property{explore.Leak},
		Limit:      1, Scripts: []explore.Script{take}, Bounds: explore.Bounds{First: true},
	})
	if err != nil || !strings.Contains(told(found), " = 2; clock 1m later: a key expires; A evalsha") ||
		len(found.Findings[0].Steps) != 6 {
		t.Errorf("found %+v, %v", found, err)
	}
}

// A run that has moved the clock leaves nothing to the next: not the time, and not that keys of the instances are gone.
func TestRedisClockIsSetBack(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	cfg := explore.Config{
		Policy: policy(t, "1 request per first-request 1m"), Scope: explore.Scope{Passes: true},
		Properties: []explore.Property{explore.FalseReject},
		Bounds:     explore.Bounds{MaxStates: 8, Preemptions: -1},
	}
	found, err := searched(t, "preset", cfg)
	if err != nil || told(found) != "" || found.Claim == "" {
		t.Errorf("found %q, %v", told(found), err)
	}
}

// A limiter that goes by its own clock is not judged by another, unless both are moved together.
func TestClocksThatAreMoved(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	cfg := explore.Config{Policy: policy(t, "1 request per fixed 1m"), Scope: explore.Scope{Passes: true},
		Properties: []explore.Property{explore.Leak, explore.FalseReject}}
	_, err := searched(t, "own-time", cfg)
	var unfit *explore.UnfitError
	if !errors.As(err, &unfit) || !strings.HasPrefix(err.Error(), "the service sends the time of its own clock") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("a clock that goes by itself: %v", err)
	}
	if _, err := searched(t, "lua", explore.Config{Scope: explore.Scope{Passes: true}}); err == nil ||
		!strings.Contains(err.Error(), "name it by --policy") {
		t.Errorf("time passes, and the window is not known: %v", err)
	}
	testenv.Program(t, "faketime")
	node := testenv.Program(t, "node")
	program, err := filepath.Abs("testdata/limiter.js")
	if err != nil {
		t.Fatal(err)
	}
	cfg.ServiceClock = "2026-01-01 00:00:00"
	later := time.Date(2026, 1, 1, 0, 0, 1, 1e6, time.Local).UnixMilli() // to the millisecond
	length := map[string]string{"minute": "1m", "clock": "1s"}
	for kind, want := range map[string]string{"minute": "",
		"clock": fmt.Sprintf("clock 1.001s later: a window ends; B zadd s %d", later)} {
		cfg.Policy = policy(t, "1 request per fixed "+length[kind])
		cfg.Service = node + " '" + program + "' " + kind
		found, err := searched(t, kind, cfg)
		if got := told(found); err != nil || !strings.Contains(got, want) || want == "" &&
			(got != "" || !strings.Contains(found.Claim, "its clock at 2026")) {
			t.Fatalf("%s: found %+v, %v, want %q", kind, found, err, want)
		}
		if want != "" {
			replayed(t, kind, &found.Findings[1], explore.Target{Process: explore.Process{Service: cfg.Service,
				ServiceClock: cfg.ServiceClock}})
		}
	}
}

// What a Redis in memory does not have is told.
func TestCommandsOfTheRedisInMemory(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	_, err := searched(t, "function", explore.Config{})
	var unfit *explore.UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "does not have: fcall limit 1 s;") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

// Instances at one instant count two callers as one; a second apart they do not.
func TestStoppedClock(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	stopped := explore.Config{Process: explore.Process{ServiceClock: "2026-01-01 00:00:00"},
		Properties: []explore.Property{explore.Leak}}
	if _, err := explored(t, "lua", stopped); err == nil || !strings.Contains(err.Error(), "libfaketime") {
		t.Errorf("a Go program: %v", err)
	}
	testenv.Program(t, "faketime")
	node := testenv.Program(t, "node")
	program, err := filepath.Abs("testdata/limiter.js")
	if err != nil {
		t.Fatal(err)
	}
	stopped.Service = node + " '" + program + "' clock"
	apart := stopped
	apart.Skew = []time.Duration{0, time.Second}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local).UnixMilli()
	want := fmt.Sprintf("leak: A zadd s %d %[1]d = 1; A zcard s = 1 admitted; B zadd s %[1]d %[1]d = 0; B zcard s = 1 "+
		"admitted", at)
	for want, cfg := range map[string]explore.Config{want: stopped, "": apart} {
		found, err := explored(t, "clock", cfg)
		if err != nil || told(found) != want || want == "" &&
			!strings.Contains(found.Claim, "clock at 2026-01-01 00:00:00 with") {
			t.Fatalf("found %+v, %v, want %q", found, err, want)
		}
		if want != "" {
			replayed(t, "clock", &found.Findings[0],
				explore.Target{Redis: redisOf(t), Process: explore.Process{Service: cfg.Service, ServiceClock: cfg.ServiceClock}})
		}
	}
}

// The searches of a service that is told nothing have time pass: what comes after a deadline that each request renews,
// or that is renewed with its old count in the last millisecond, is rejected falsely. What is right is not accused, nor
// is what cannot be judged.
func TestTimePassesByDefault(t *testing.T) {
	testenv.Sequential(t)
	const rejected = "false-reject: A "
	for kind, want := range map[string]string{
		"renews": rejected, "last-millisecond": rejected, "lua": "", "pipeline": rejected, "redis-time": "", "hours": "",
		"blocks": "unfit", "no-ttl": "unfit", "remembers": "",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := waiting(t)
			if kind == "hours" { // also from the middle of one
				cfg.ServiceClock = ""
			}
			found, err := searched(t, kind, cfg)
			var unfit *explore.UnfitError
			switch {
			case want == "unfit":
				if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "name the window by --policy") {
					t.Errorf("found %+v, %v", found, err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			if got := told(found); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
				t.Errorf("found %q, want %q", got, want)
			}
			if len(found.Findings) > 0 {
				replayed(t, kind, &found.Findings[0], explore.Target{})
			} else if !strings.Contains(found.Claim, "the longest time to live of the subject's keys") {
				t.Errorf("claims %q", found.Claim)
			}
		})
	}
}

// waiting is the search of a service in which time passes between calls, by default.
func waiting(t *testing.T) explore.Config {
	t.Helper()
	told := explore.Config{Process: explore.Process{Service: "true"}}
	for _, cfg := range explore.Searches(testkit.Strategy(t, "http"), told) {
		if cfg.LearnWindow {
			cfg.Service = ""
			return cfg
		}
	}
	t.Fatal("no search learns the window")
	return explore.Config{}
}

// Commands that come after an answer, or that the answer does not wait for, are named, and nothing is claimed.
func TestCommandsAfterTheAnswer(t *testing.T) {
	defer setFor(&service.AnswerTime, 100*time.Millisecond)()
	for kind, command := range map[string]string{"gives-back-later": "decr s", "does-not-wait": "set s 1 ex 60"} {
		_, err := searched(t, kind, explore.Config{})
		if !errors.Is(err, explore.ErrAfterAnswer) || !strings.Contains(err.Error(), ": "+command+": ") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
