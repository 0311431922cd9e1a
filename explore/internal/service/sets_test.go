package service_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Several sets of instances find what one finds, and count the same.
func TestSets(t *testing.T) {
	testenv.Long(t)
	defer setFor(&service.SetsFrom, 8)()
	for _, c := range []struct {
		kind, want string
		memory     bool
		cfg        explore.Config
	}{
		{"get-set", "leak", false, explore.Config{Clients: 3, Properties: []explore.Property{explore.Leak}}},
		{"incr-expire", "ttl", false, explore.Config{Faults: []quota.Fault{quota.FaultCrash},
			Properties: []explore.Property{explore.TTL}}},
		{"set-incr", "", false, explore.Config{Clients: 3}},
		{"preset", "", false, explore.Config{Clients: 4}},
		{"set-incr", "", true, explore.Config{Clients: 3}},
		// Each Redis in memory has scripts and a clock of its own.
		{"loaded", "leak", true, explore.Config{Faults: []quota.Fault{"script-flush"},
			Properties: []explore.Property{explore.Leak}}},
		{"set-incr", "ttl", true, explore.Config{Faults: []quota.Fault{quota.FaultClock},
			Properties: []explore.Property{explore.TTL},
			Policy:     policy(t, "1 request per first-request 1m")}},
	} {
		c.cfg.MaxStates = 24
		c.cfg.Preemptions = -1
		var one []byte
		for _, sets := range []int{1, 3} {
			c.cfg.Workers = sets
			target := explore.Target{}
			c.cfg.Redis = nil
			if !c.memory {
				c.cfg.Redis = redisOf(t)
				target.Redis = redisOf(t)
			}
			found, processes, err := countedOn(t, c.kind, c.cfg)
			if err != nil {
				t.Fatal(c.kind, err)
			}
			if processes != sets*found.Instances && len(c.cfg.Faults) == 0 {
				t.Errorf("%s: %d processes for %d sets", c.kind, processes, sets)
			}
			if got, _, _ := strings.Cut(told(found), ":"); got != c.want {
				t.Errorf("%s: found %q, want %q", c.kind, told(found), c.want)
			}
			for i := range found.Findings {
				replayed(t, c.kind, &found.Findings[i], target)
				found.Findings[i].ReplayWith = "" // it names a file of this run
			}
			text, err := json.Marshal(found)
			if err != nil {
				t.Fatal(err)
			}
			if one == nil {
				one = text
			}
			if string(text) != string(one) {
				t.Errorf("%s: %d sets found\n%s\none\n%s", c.kind, sets, text, one)
			}
		}
	}
}

// Further sets are had of what can be had several times.
func TestFewerSets(t *testing.T) {
	defer setFor(&service.SetsFrom, 2)()
	cfg := explore.Config{Resources: explore.Resources{Workers: 2}, Clients: 3,
		Bounds: explore.Bounds{MaxStates: 20, Preemptions: -1}}
	_, err := explored(t, "select", cfg)
	var unfit *explore.UnfitError
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "selects a database of Redis by itself") {
		t.Errorf("a service that selects a database: %v", err)
	}
	lost := cfg
	lost.Faults = []quota.Fault{"script-flush"}
	lost.Redis = redisOf(t)
	lost.Service = "true"
	if one, err := lost.Complete(testkit.Strategy(t, "http")); err != nil || one.Workers != 1 {
		t.Errorf("scripts that are lost: %d workers, %v", one.Workers, err)
	}
}

// A set that tires has all start anew.
func TestSetsThatDoNotRepeat(t *testing.T) {
	defer setFor(&service.SetsFrom, 2)()
	cfg := explore.Config{Resources: explore.Resources{Workers: 2}, Clients: 3,
		Bounds: explore.Bounds{MaxStates: 6, Preemptions: -1}}
	if found, err := explored(t, "tired", cfg); err != nil || len(found.Findings) > 0 || found.Runs != 6 {
		t.Errorf("a service that tires: %+v, %v", found, err)
	}
}

// Clients of one instance come between each other, by one connection or several.
func TestSharedInstances(t *testing.T) {
	crash := []quota.Fault{quota.FaultCrash}
	type search struct {
		kind   string
		faults []quota.Fault
		look   []explore.Property
		want   string
	}
	some := []search{
		{"get-set", nil, nil, "leak: A starts; A get s = nil; B starts; B get s = nil; A set s 1 ex 60 = OK admitted; B " +
			"set s 1 ex 60 = OK admitted"},
		{"locked-get-set", nil, nil, ""},
		{"incr-expire", crash, []explore.Property{explore.TTL}, "ttl: A starts; A incr s = 1; A crash"},
	}
	for _, c := range testenv.Pick(some, append(some, []search{
		{"cache", nil, nil, ""}, {"incr-expire", nil, nil, ""}, {"lua", nil, nil, ""},
		{"lua", crash, []explore.Property{explore.Leak, explore.TTL, explore.Stuck}, ""},
	}...)) {
		cfg := explore.Config{Instances: 1, Faults: c.faults, Properties: c.look,
			Bounds: explore.Bounds{MaxStates: 60, Preemptions: -1}}
		restore := func() {}
		if !strings.HasPrefix(c.kind, "locked") { // no request waits for another
			restore = setFor(&service.Quiet, time.Minute)
		}
		found, processes, err := counted(t, c.kind, cfg)
		restore()
		if err != nil {
			t.Fatal(c.kind, err)
		}
		if got := told(found); got != c.want {
			t.Errorf("%s: found %q, want %q", c.kind, got, c.want)
		}
		if !shared(found) || len(c.faults) == 0 && processes != 1 {
			t.Errorf("%s: %d processes, claims %q", c.kind, processes, found.Claim)
		}
		for i := range found.Findings {
			replayed(t, c.kind, &found.Findings[i], explore.Target{Redis: redisOf(t)})
		}
	}
}

// shared reports whether what is claimed, if anything is, is said of one instance.
func shared(found *results.Search) bool {
	return found.Claim == "" || strings.Contains(found.Claim, "where the clients share 1 instance of ") ||
		found.Capped != ""
}

// Three clients are on two instances, and the last is on the first.
func TestSomeShareAnInstance(t *testing.T) {
	t.Parallel()
	found, processes, err := counted(t, "locked-get-set",
		explore.Config{Clients: 3, Instances: 2, Bounds: explore.Bounds{First: true},
			Properties: []explore.Property{explore.Leak}})
	if err != nil || processes != 2 || !strings.HasPrefix(told(found), "leak: ") {
		t.Errorf("%d processes, found %+v, %v", processes, found, err)
	}
}

// Clients of one process in Node share a connection, on which commands take effect in their order.
func TestSharedConnection(t *testing.T) {
	testenv.Sequential(t)
	node := testenv.Program(t, "node")
	defer setFor(&service.Quiet, time.Minute)()
	program, err := filepath.Abs("testdata/limiter.js")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"get-set": "leak: A starts; B starts; A get s = nil; B get s = nil; A set s 1 EX 60 = OK admitted; B set s 1 EX " +
			"60 = OK admitted", "lua": "",
	} {
		found, err := explored(t, kind, explore.Config{Instances: 1,
			Process: explore.Process{Service: node + " '" + program + "' " + kind}})
		if err != nil || told(found) != want || want == "" && !strings.Contains(found.Claim, "no violation in ") {
			t.Errorf("%s: found %+v, %v, want %q", kind, found, err, want)
		}
	}
}
