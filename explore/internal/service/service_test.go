package service_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// setFor sets a variable of the engine until the function that it returns is called.
func setFor[T any](variable *T, value T) (restore func()) {
	was := *variable
	*variable = value
	return func() { *variable = was }
}

// redisOf is a Redis of the test's own.
func redisOf(t *testing.T) goredis.UniversalClient {
	t.Helper()
	s, err := redis.Open(t.Context(), "embedded", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Admin()
}

// explored searches a planted service on a Redis server, and sees to it that no process of it is left.
func explored(t *testing.T, kind string, cfg explore.Config) (*results.Search, error) {
	t.Helper()
	found, _, err := counted(t, kind, cfg)
	return found, err
}

// counted returns also how many processes there were.
func counted(t *testing.T, kind string, cfg explore.Config) (found *results.Search, processes int, err error) {
	t.Helper()
	cfg.Redis = redisOf(t)
	return countedOn(t, kind, cfg)
}

func searched(t *testing.T, kind string, cfg explore.Config) (*results.Search, error) {
	t.Helper()
	found, _, err := countedOn(t, kind, cfg)
	return found, err
}

func countedOn(t *testing.T, kind string, cfg explore.Config) (found *results.Search, processes int, err error) {
	t.Helper()
	return countedBy(t, kind, "http", cfg)
}

// countedBy searches the strategy http with the options that its text has.
func countedBy(t *testing.T, kind, strategy string, cfg explore.Config) (found *results.Search, processes int,
	err error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(t.TempDir(), "pids")
	if cfg.Service == "" {
		cfg.Service = "'" + program + "'"
	}
	cfg.Environment = append(cfg.Environment, plantedVariable+"="+kind, pidVariable+"="+pids)
	found, err = explore.Run(t.Context(), testkit.Strategy(t, strategy), cfg)
	list, _ := os.ReadFile(pids)
	for _, text := range strings.Fields(string(list)) {
		processes++
		pid, nerr := strconv.Atoi(text)
		if nerr != nil {
			t.Fatal(nerr)
		}
		if !gone(pid) {
			t.Errorf("%s: process %d is left", kind, pid)
		}
	}
	return found, processes, err
}

// gone waits until a process has ended, which one that was killed does at once.
func gone(pid int) bool {
	for range 1000 {
		if _, err := server.ProcessIdentity(pid); err != nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// plantedSearch is a search of a planted service, and what it finds: a property, or all steps.
type plantedSearch struct {
	kind   string
	faults []quota.Fault
	look   []explore.Property
	want   string
}

// A key whose name a timeline shortens is the subject's own.
func TestLongKeys(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("p", 19) + "s" + strings.Repeat("z", 9)
	findPlanted(t, []plantedSearch{
		{"long-keys", nil, nil, fmt.Sprintf("leak: A get %[1]s = nil; B get %[1]s = nil; A set %[1]s 1 ex 60 = OK admitted; "+
			"B set %[1]s 1 ex 60 = OK admitted", key)},
		{"blocked-long-keys", nil, nil, "leak"},
	})
}

// A service works again once a fault is over, and admits nobody meanwhile. Each is searched as by default.
func TestAfterFaults(t *testing.T) {
	testenv.Sequential(t)
	type behaviour struct {
		kind, strategy string
		want           map[quota.Fault]string
	}
	stuck := map[quota.Fault]string{"script-flush": "stuck: "}
	some := []behaviour{
		{"lua", "http", nil}, {"loaded-once", "http", stuck},
		{"open", "http", map[quota.Fault]string{quota.FaultOutage: "leak: "}},
	}
	all := append(some, behaviour{"loaded-closed", "http", stuck}, behaviour{"open", "http:down=open", nil})
	for _, c := range testenv.Pick(some, all) {
		t.Run(c.kind+" "+c.strategy, func(t *testing.T) {
			t.Parallel()
			sel := testkit.Strategy(t, c.strategy)
			asked := explore.Config{Process: explore.Process{Service: os.Args[0]}, Bounds: explore.Bounds{MaxStates: 60}}
			for _, cfg := range explore.Searches(sel, asked) {
				if len(cfg.Faults) != 1 || cfg.Clients != 1 {
					continue
				}
				found, _, err := countedBy(t, c.kind, c.strategy, cfg)
				if err != nil {
					t.Fatal(err)
				}
				got := told(found)
				if want := c.want[cfg.Faults[0]]; !strings.HasPrefix(got, want) || want == "" && got != "" {
					t.Errorf("fault %s: found %q, want %q", cfg.Faults[0], got, want)
				}
			}
		})
	}
}

// All faults of a service are those that its Redis can have.
func TestAllFaults(t *testing.T) {
	cfg := explore.Config{Process: explore.Process{Service: "true"}, Resources: explore.Resources{Redis: redisOf(t)}}
	all, left := cfg.AllFaults(testkit.Strategy(t, "http"))
	why := map[quota.Fault]string{quota.FaultRetry: "cannot befall a service", quota.FaultClock: "clock of a Redis server",
		"timeout": "a short timeout"}
	for _, out := range left {
		if want := why[out.Fault]; want == "" || !strings.Contains(out.Why.Error(), want) {
			t.Errorf("%s is left out: %v", out.Fault, out.Why)
		}
	}
	want := []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultEviction, quota.FaultOutage, "script-flush",
		"restart"}
	if !slices.Equal(all, want) || len(left) != len(why) {
		t.Errorf("all are %v, want %v", all, want)
	}
}

// A key of the subject's own must expire. A setting need not.
func TestKeysThatNeverExpire(t *testing.T) {
	t.Parallel()
	findPlanted(t, []plantedSearch{{"no-ttl", nil, nil, "ttl: A incr s = 1 admitted"}, {"preset", nil, nil, ""}})
}

// Each planted defect is found, with its shortest schedule, and no other property is broken by it.
func TestPlantedServices(t *testing.T) {
	testenv.Long(t)
	crash := []quota.Fault{quota.FaultCrash}
	lost := []quota.Fault{quota.FaultLostReply}
	findPlanted(t, []plantedSearch{
		{"get-set", nil, nil, "leak: A get s = nil; B get s = nil; A set s 1 ex 60 = OK admitted; B set s 1 ex 60 = OK " +
			"admitted"},
		{"sorted-set", nil, []explore.Property{explore.Leak},
			"leak: A zadd s 1700000000 1700000000 = 1; A zcard s = 1; A expire s 60 = 1 admitted; " +
				"B zadd s 1700000000 1700000000 = 0; B zcard s = 1; B expire s 60 = 1 admitted"},
		{"cache", nil, nil, "leak: A set s 1 ex 60 = OK admitted; B set s 1 ex 60 = OK admitted"},
		{"incr-expire", crash, []explore.Property{explore.TTL}, "ttl: A incr s = 1; A crash"},
		{"lock", crash, []explore.Property{explore.Stuck}, "stuck"},
		// The client library sends the command again.
		{"set-incr", lost, []explore.Property{explore.FalseReject}, "false-reject"},
		{"incr-expire", nil, nil, ""}, {"lua", nil, nil, ""}, {"set-incr", nil, nil, ""}, {"pipeline", nil, nil, ""},
		{"lock", nil, nil, ""},
		{"lua", crash, []explore.Property{explore.Leak, explore.TTL, explore.Stuck}, ""},
		{"pipelined", crash, []explore.Property{explore.Leak, explore.TTL, explore.Stuck}, ""},
		{"get-set-time", nil, nil, "leak"},
	})
}

// findPlanted makes searches of planted services, and repeats what they find.
func findPlanted(t *testing.T, searches []plantedSearch) {
	t.Helper()
	for _, c := range searches {
		t.Run(c.kind, func(t *testing.T) {
			if c.faults == nil { // no process is ended or started meanwhile
				testenv.Sequential(t)
			}
			found, err := explored(t, c.kind,
				explore.Config{Faults: c.faults, Properties: c.look, Bounds: explore.Bounds{MaxStates: 60, Preemptions: -1}})
			if err != nil {
				t.Fatal(err)
			}
			if got := told(found); got != c.want &&
				(strings.Contains(c.want, ":") || !strings.HasPrefix(got, c.want+":") || c.want == "") {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if found.Claim == "" && len(c.look) != 1 {
				t.Error("nothing is claimed of the other properties")
			}
			if len(found.Findings) > 0 {
				replayed(t, c.kind, &found.Findings[0], explore.Target{Redis: redisOf(t)})
			}
		})
	}
}

// Searches that are told nothing but the service, and those that are told its window, find each planted race, and none
// in a right limiter.
func TestSearchesOfAService(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	limiter, err := filepath.Abs("testdata/limiter.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node               bool
		kind, policy, want string
	}{
		{false, "get-set", "", "leak in search 1"}, {false, "incr-expire", "", "ttl in search 2"},
		{true, "clock", "", "leak in search "}, // the last, unless both clocks are in the same millisecond before
		{false, "refund", "1 request per fixed 1m", "leak in search 8"},
		{true, "lua", "", ""}, {false, "redis-time", "1 request per fixed 1m", ""},
	} {
		t.Run(c.kind, func(t *testing.T) {
			cfg := explore.Config{Process: explore.Process{Service: os.Args[0]},
				Bounds: explore.Bounds{MaxStates: 60, Preemptions: -1}}
			if c.node {
				testenv.Program(t, "faketime")
				cfg.Service = testenv.Program(t, "node") + " '" + limiter + "' " + c.kind
			}
			if c.kind == "clock" { // in two milliseconds both are rejected
				cfg.Properties = []explore.Property{explore.Leak}
			}
			if c.policy == "" {
				cfg.Redis = redisOf(t)
			} else {
				cfg.Policy = policy(t, c.policy)
			}
			var found string
			for i, cfg := range explore.Searches(testkit.Strategy(t, "http"), cfg) {
				got, _, err := countedOn(t, c.kind, cfg)
				// of a Go program
				unfit := errors.Is(err, explore.ErrNotDeterministic) && c.kind == "clock" || cfg.ServiceClock != "" && !c.node
				if err != nil && !unfit {
					t.Errorf("search %d: %v", i+1, err)
				}
				if err == nil && len(got.Findings) > 0 {
					found = fmt.Sprintf("%s in search %d", got.Findings[0].Property, i+1)
					break
				}
			}
			if !strings.HasPrefix(found, c.want) || c.want == "" && found != "" {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// Requests for more than the limit, and time within a window, are tried by default: what is wrong is found in some search
// without faults, and its right twin in none.
func TestRequestsByDefault(t *testing.T) {
	testenv.Sequential(t)
	const costs = "/?key={subject}&cost={units}"
	const rolling = "5 requests per rolling 1m"
	for _, c := range []struct {
		kind, request, policy string
		wrong                 explore.Property
	}{
		{"large-units", costs, "", explore.Leak}, {"units", costs, "", ""},
		{"log-rejected", "", "", explore.FalseReject}, {"log", "", "", ""},
		{"lua", "", rolling, explore.Leak}, {"log", "", rolling, ""},
	} {
		t.Run(c.kind+" "+c.policy, func(t *testing.T) {
			t.Parallel()
			cfg := explore.Config{Process: explore.Process{Service: os.Args[0], Request: c.request},
				Bounds: explore.Bounds{MaxStates: 150, Preemptions: -1}}
			if c.policy != "" {
				cfg.Policy = policy(t, c.policy)
			}
			var found explore.Property
			for _, cfg := range explore.Searches(testkit.Strategy(t, "http"), cfg) {
				if c.policy != "" && !cfg.Passes || len(cfg.Faults) > 0 {
					continue
				}
				got, _, err := countedOn(t, c.kind, cfg)
				if err != nil && cfg.ServiceClock == "" { // the clock of a Go program cannot be stopped
					t.Error(err)
				}
				if err == nil && len(got.Findings) > 0 {
					found = got.Findings[0].Property
					break
				}
			}
			if found != c.wrong {
				t.Errorf("found %q, want %q", found, c.wrong)
			}
		})
	}
}

// What Redis loses, and replies that come too late, are told from what each of them breaks.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	const slow = "REDIS_URL={redis-url}?read_timeout=500ms&max_retries=1"
	scripts := quota.Fault("script-flush")
	restart := quota.Fault("restart")
	late := quota.Fault("timeout")
	leak := []explore.Property{explore.Leak}
	reject := []explore.Property{explore.FalseReject}
	type search struct {
		kind  string
		fault quota.Fault
		look  []explore.Property
		want  string
	}
	some := []search{
		{"loaded", scripts, leak, "leak: store drops its scripts; A evalsha"},
		{"lua", scripts, leak, ""},
		{"preset", restart, reject, "false-reject: store starts anew without data; A get preset = nil rejected"},
		// The client library sends the command again when its connection ends, and when no reply comes.
		{"set-incr", late, reject, "false-reject: A set s 0 ex 60 nx = OK; A reply; A incr s = 1; A lost-replyno reply in " +
			"time; A incr s = 2; A reply rejected"},
	}
	for _, c := range testenv.Pick(some, append(some, search{"lua", restart, reject, ""}, search{"lua", late, leak, ""})) {
		t.Run(c.kind+" "+string(c.fault), func(t *testing.T) {
			t.Parallel()
			cfg := explore.Config{Faults: []quota.Fault{c.fault}, Properties: c.look, Bounds: explore.Bounds{First: true},
				Process: explore.Process{Environment: []string{slow}}}
			if c.fault == restart { // after each schedule it is seen whether the service recovers
				cfg.Clients = 1
			}
			if c.fault == late && c.want == "" { // each schedule waits for a timeout
				cfg.MaxStates = 8
				cfg.Preemptions = -1
			}
			found, err := explored(t, c.kind, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(found); !strings.HasPrefix(got, c.want) || c.want == "" && (got != "" || found.Claim == "") {
				t.Errorf("found %q, want %q; claims %q", got, c.want, found.Claim)
			}
			if len(found.Findings) > 0 {
				replayed(t, c.kind, &found.Findings[0], explore.Target{Redis: redisOf(t),
					Process: explore.Process{Environment: []string{slow}}})
			}
		})
	}
}

// A search whose time is up before its first schedule claims nothing.
func TestTimeout(t *testing.T) {
	t.Parallel()
	found, err := explored(t, "lua", explore.Config{Bounds: explore.Bounds{Timeout: time.Nanosecond}})
	if err != nil || found.Tried() || found.Claim != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Passwords of a service's own URLs stand in no record.
func TestPasswordsOfAService(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	cfg := explore.Config{
		Process: explore.Process{Service: "CACHE=redis://:S3cr3tA@h '" + os.Args[0] + "'",
			Environment: []string{"STORE=postgres://u:S3cr3tB@h/d"}},
		Properties: []explore.Property{explore.Leak}, Bounds: explore.Bounds{First: true},
	}
	found, err := explored(t, "get-set", cfg)
	if err != nil {
		t.Fatal(err)
	}
	record, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(record); strings.Contains(text, "S3cr3t") || !strings.Contains(text, "redis://:***@h") ||
		!strings.Contains(text, "postgres://u:***@h/d") {
		t.Errorf("recorded: %s", text)
	}
}

// A late reply proves nothing of a service that waits for it.
func TestWithoutATimeout(t *testing.T) {
	t.Parallel()
	cfg := explore.Config{Faults: []quota.Fault{"timeout"}, Bounds: explore.Bounds{DecisionTimeout: time.Second},
		Process: explore.Process{Environment: []string{"REDIS_URL={redis-url}?read_timeout=1m"}}}
	_, err := explored(t, "lua", cfg)
	var unfit *explore.UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "waits for a reply of Redis for 1s or longer") {
		t.Errorf("error %v", err)
	}
}

// A counter that is named is held against what was admitted.
func TestDriftOfACounter(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, c := range []struct{ kind, counter, want string }{
		{"incr-expire", "{subject}", "drift: A incr s = 1; A expire s 60 = 1 admitted; B incr s = 2 rejected"},
		{"get-set", "{subject}", "drift: A get s = nil; B get s = nil; A set s 1 ex 60 = OK admitted; B set s 1 ex 60 = " +
			"OK admitted"},
		{"undo", "{subject}", ""},
		{"lua", "count:{subject}", "no key is count:s after requests that come one after the other: the keys are s"},
		{"sorted-set", "{subject}", "the key s of --counter has no whole number: WRONGTYPE"},
	} {
		found, err := explored(t, c.kind, explore.Config{Process: explore.Process{Counter: c.counter},
			Properties: []explore.Property{explore.Drift}})
		var unfit *explore.UnfitError
		if errors.As(err, &unfit) {
			if !strings.HasPrefix(err.Error(), c.want) || c.want == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v, want %q", c.kind, err, c.want)
			}
			continue
		}
		if err != nil || told(found) != c.want || c.want == "" && !strings.HasPrefix(found.Claim, "drift: ") {
			t.Fatalf("%s: found %q, %v, want %q", c.kind, told(found), err, c.want)
		}
		if c.want != "" {
			replayed(t, c.kind, &found.Findings[0], explore.Target{Redis: redisOf(t),
				Process: explore.Process{Counter: c.counter}})
		}
	}
}

// reads are those of a client of long-get-set.
func reads(client string) string {
	return strings.Repeat(client+" get s:a = nil; ", 5) + client + " get s = nil; "
}

// A race that needs one interruption is found although a bound ends the search before.
func TestFewPreemptions(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for most, want := range map[int]bool{-1: false, 1: true} {
		cfg := explore.Config{Bounds: explore.Bounds{MaxStates: 14, Preemptions: most},
			Properties: []explore.Property{explore.Leak}}
		found, err := explored(t, "long-get-set", cfg)
		if err != nil || found.Capped != "ended after 14 schedules" {
			t.Fatalf("found %+v, %v", found, err)
		}
		if got := strings.HasPrefix(told(found), "leak: "+reads("A")+reads("B")+"B set s 1"); got != want ||
			(found.Bounded != nil) != want {
			t.Errorf("%d preemptions: found %q, second part %+v", most, told(found), found.Bounded)
		} else if want {
			replayed(t, "long-get-set", &found.Findings[0], explore.Target{Redis: redisOf(t)})
		}
	}
	found, err := explored(t, "set-incr",
		explore.Config{Bounds: explore.Bounds{MaxStates: 2, Preemptions: 2}, Properties: []explore.Property{explore.Leak}})
	if err != nil || !strings.Contains(found.Claim,
		"and none in all schedules without a preemption (2 of up to 4 steps) and some with more; ") {
		t.Errorf("a second part that ends early claims %q, %v", found.Claim, err)
	}
}

// told is what was found, in a line.
func told(found *results.Search) string {
	var out []string
	for _, f := range found.Findings {
		var steps []string
		for _, s := range f.Steps {
			text := s.Actor + " "
			if s.Event.Injected() {
				text += string(s.Event)
			}
			text += s.Command
			if s.Reply != "" && s.Command != "" {
				text += " = "
			}
			steps = append(steps, strings.TrimSpace(text+s.Reply+" "+s.Outcome))
		}
		out = append(out, string(f.Property)+": "+strings.Join(steps, "; "))
	}
	return strings.Join(out, "\n")
}

// replayed repeats a finding by its token.
func replayed(t *testing.T, kind string, f *results.Finding, on explore.Target) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	on.Service = cmp.Or(on.Service, "'"+program+"'")
	on.Environment = append(on.Environment, plantedVariable+"="+kind)
	r, err := explore.Replay(t.Context(), f.Token, on)
	if err != nil || !r.Broken || len(r.Finding.Steps) != len(f.Steps) {
		t.Errorf("repeated: %+v, %v", r, err)
	}
}

// A service in another language is no other.
func TestNode(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	node := testenv.Program(t, "node")
	program, err := filepath.Abs("testdata/limiter.js")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"get-set": "leak: A get s = nil; B get s = nil; A set s 1 EX 60 = OK admitted; B set s 1 EX 60 = OK admitted",
		"lua":     "", "careless": "",
	} {
		command := node + " '" + program + "' " + kind
		found, err := explored(t, kind, explore.Config{Process: explore.Process{Service: command}})
		if err != nil || told(found) != want || found.Claim == "" {
			t.Errorf("%s: found %+v, %v, want %q", kind, found, err, want)
		}
	}
}

// A service that misbehaves is told in one line, and nothing is claimed.
func TestMisbehavingServices(t *testing.T) {
	was := server.OpenTimeout
	for _, c := range []struct{ kind, want string }{
		{"absent", "the service does not start: it ends at once, and its last output is: sh: 1: exec: no-such-program: " +
			"not found"},
		{"exit", "the service does not start: it ends at once, and its last output is: the configuration is missing"},
		{"deaf", "the service does not listen on the port of PORT"},
		{"hang", "the service does not answer its first request within 1s"},
		{"garbled", "the service's first answer is no decision: the service answers with status 500"},
		{"crash", "the service ends in the middle"},
		{"failing", "the service's answers to requests that come one after the other are no decisions: A error: the " +
			"service answers with status 500"},
		{"memory", "no command of the service came through the proxy"},
		{"foul", "what goes between the service and its store is not the store's protocol"},
		{"fixed", "the service does not start: the port was taken by another program (it ends at once, and its last " +
			"output is: listen tcp"},
		{"left", "the service does not start: it ends at once, and has printed nothing"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			cfg := explore.Config{}
			switch c.kind {
			case "absent":
				cfg.Service = "no-such-program"
			case "fixed":
				port, err := server.FreePort(0)
				if err != nil {
					t.Fatal(err)
				}
				cfg.Environment = []string{fmt.Sprintf("%s=%d", portVariable, port)}
			case "left": // the shell ends, and what it has started does not
				program, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				cfg.Service = fmt.Sprintf("%s=deaf '%s' & until [ -s \"$%s\" ]; do sleep 0.01; done", plantedVariable, program,
					pidVariable)
			case "deaf":
				server.OpenTimeout = time.Second
				defer func() { server.OpenTimeout = was }()
			case "hang":
				cfg.DecisionTimeout = time.Second
			}
			found, err := explored(t, c.kind, cfg)
			var unfit *explore.UnfitError
			if !errors.As(err, &unfit) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if found != nil && found.Claim != "" {
				t.Errorf("claims %q", found.Claim)
			}
		})
	}
}

// What a second run of a schedule does not show is no finding, and is told.
func TestEndOfAWindow(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	found, err := explored(t, "window-ends", explore.Config{Properties: []explore.Property{explore.Leak}})
	if err != nil || len(found.Findings) > 0 || found.Capped != "1 schedule went otherwise when run again" {
		t.Errorf("found %q, ended by %q, %v", told(found), found.Capped, err)
	}
}

// Requests that come one after the other do so by the clocks of the processes, too.
func TestClocksOfCallers(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	cfg := explore.Config{Clients: 3, Limit: 2, Properties: []explore.Property{explore.FalseReject},
		Bounds: explore.Bounds{MaxStates: 8, Preemptions: -1}}
	found, err := explored(t, "caller-clock", cfg)
	if err != nil || len(found.Findings) > 0 || found.Claim == "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Another program that has had the port for a moment is not taken for the service.
func TestVisitedPort(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, kind := range []string{"visited", "cut"} {
		found, err := explored(t, kind, explore.Config{})
		if err != nil || len(found.Findings) > 0 || found.Claim == "" {
			t.Errorf("%s: found %+v, %v", kind, found, err)
		}
	}
}

// A command that comes when its request is answered is no step of the next one.
func TestCommandsAfterAnAnswer(t *testing.T) {
	t.Parallel()
	found, err := explored(t, "afterwards",
		explore.Config{Clients: 3, Properties: []explore.Property{explore.Leak, explore.FalseReject}})
	if err != nil || len(found.Findings) > 0 || found.Depth != 3 {
		t.Errorf("found %q in schedules of up to %d steps, %v", told(found), found.Depth, err)
	}
}

// Nothing is claimed of a service whose commands could not all be held.
func TestCommandsThatPass(t *testing.T) {
	t.Parallel()
	found, err := explored(t, "blocking", explore.Config{Limit: 1})
	if !errors.Is(err, explore.ErrUnseen) || found == nil || found.Claim != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// Instances that keep something from one subject for the next are started anew before each
// schedule, and if they are unlike themselves even then nothing is said of them.
func TestServicesThatDoNotRepeat(t *testing.T) {
	testenv.Sequential(t)
	cfg := explore.Config{Clients: 3, Bounds: explore.Bounds{MaxStates: testenv.Pick(6, 20), Preemptions: -1}}
	found, err := explored(t, "tired", cfg)
	if err != nil || len(found.Findings) > 0 {
		t.Errorf("a service that tires: %v, %v", found, err)
	}
	defer setFor(&service.ControlEvery, 5)()
	if _, err := explored(t, "weary", cfg); !errors.Is(err, explore.ErrNotDeterministic) {
		t.Errorf("a service that never recovers: %v", err)
	}
}

// A service with a limit of its own, or that does not know the subject, is told what to type. One that reads LIMIT and
// admits more is judged, as one whose limit was named.
func TestLimitOfAService(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, c := range []struct {
		kind         string
		limit        int64
		refused, got string
	}{
		{"five", 0, "add --limit 5", ""},
		{"five", 5, "", ""},
		{"counts-none", 0, "rejects none of 1000 requests", ""},
		{"counts-none", 2, "", "leak"},
		{"all-alike", 0, "rejects the first request of a new subject", ""},
		{"one-more", 0, "", "leak"},
	} {
		cfg := explore.Config{Limit: c.limit, Properties: []explore.Property{explore.Leak}}
		found, err := explored(t, c.kind, cfg)
		if c.refused != "" {
			var unfit *explore.UnfitError
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: error %v, want %q", c.kind, err, c.refused)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(told(found), c.got) || (c.got == "") != (told(found) == "") {
			t.Errorf("%s with a limit of %d: found %q, %v, want %q", c.kind, c.limit, told(found), err, c.got)
		}
	}
}

// What cannot be asked of a service is refused.
func TestUnfitForServices(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]explore.Config{
		"of a Redis server": {Faults: []quota.Fault{quota.FaultClock}},
		"fault retry":       {Faults: []quota.Fault{quota.FaultRetry}},
		"needs a counter":   {Properties: []explore.Property{explore.Drift}},
		"may share":         {Clients: 2, Instances: 1, Faults: []quota.Fault{quota.FaultLostReply}},
		"write {subject}":   {Process: explore.Process{Request: "/check"}},
		"begins with /":     {Process: explore.Process{Request: "check?key={subject}"}},
		"the same key":      {Process: explore.Process{Counter: "limit"}},
		"whole seconds": {Process: explore.Process{ServiceClock: "2026-01-01 00:00:00"},
			Skew: []time.Duration{0, time.Millisecond}},
		"write a moment":     {Process: explore.Process{ServiceClock: "noon"}},
		"have one clock":     {Skew: []time.Duration{0, time.Second}},
		"limit out":          {Scripts: slices.Repeat([]explore.Script{{{Kind: explore.Limit, Units: 2}}}, 1)},
		"its limit is lower": {Limit: 9, Process: explore.Process{Environment: []string{"LIMIT=2"}}},
	} {
		_, err := explored(t, "lua", cfg)
		var unfit *explore.UnfitError
		if !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
