package leases_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

// board is a server in memory. calls notes what is written to it.
type board struct {
	entries map[stores.Scope]leases.Entry
	keys    map[stores.Scope]int64
	calls   []string
	failing map[string]error // by the name of a method
	// amid is called between a look at the entries and what follows.
	amid func()
	// others' entries are not listed.
	hidden bool
}

func newBoard() *board {
	return &board{entries: map[stores.Scope]leases.Entry{}, keys: map[stores.Scope]int64{}, failing: map[string]error{}}
}

func (b *board) Name(scope stores.Scope) string { return "qb:" + string(scope) }

func (b *board) Entries(context.Context) ([]leases.Entry, error) {
	all := slices.Collect(maps.Values(b.entries))
	if b.amid != nil {
		b.amid()
	}
	if b.hidden {
		all = nil
	}
	return all, b.failing["entries"]
}

func (b *board) Enter(_ context.Context, old leases.Entry, text string) (bool, error) {
	if err := b.failing["enter"]; err != nil {
		return false, err
	}
	now := b.entries[old.Scope]
	if now.Version != old.Version {
		return false, nil
	}
	b.entries[old.Scope] = leases.Entry{Scope: old.Scope, Text: text, Version: now.Version + 1, Renewed: true}
	return true, nil
}

func (b *board) Renew(_ context.Context, scopes []stores.Scope) error {
	b.calls = append(b.calls, fmt.Sprint("renew ", scopes))
	return b.failing["renew"]
}

func (b *board) Leave(_ context.Context, scope stores.Scope, last bool) error {
	b.calls = append(b.calls, fmt.Sprintf("leave %s %t", scope, last))
	delete(b.entries, scope)
	return b.failing["leave"]
}

func (b *board) Clear(_ context.Context, scope stores.Scope) (int64, error) {
	count := b.keys[scope]
	delete(b.keys, scope)
	return count, b.failing["clear"]
}

func (b *board) Count(context.Context, []stores.Scope) (map[stores.Scope]int64, error) {
	return maps.Clone(b.keys), b.failing["count"]
}

// put enters a scope with two keys for somebody.
func (b *board) put(scope stores.Scope, text string, renewed bool) {
	b.entries[scope] = leases.Entry{Scope: scope, Text: text, Version: 1, Renewed: renewed}
	b.keys[scope] = 2
}

// shared is a store on a board. Its keys are removed as a server does it.
func shared(t *testing.T, b *board) (*leases.Self, leases.Common) {
	t.Helper()
	s := &leases.Self{Kind: "redis"}
	s.Remove = func(ctx context.Context, scope stores.Scope) error {
		_, err := b.Clear(ctx, scope)
		return err
	}
	s.Usage = func(_ context.Context, scope stores.Scope) (stores.Usage, error) {
		return stores.Usage{Keys: b.keys[scope]}, nil
	}
	s.Share(b)
	t.Cleanup(func() { _ = s.End(func() error { return nil }) })
	return s, s.Common()
}

// Owners of entries: another process of this machine that runs or has ended, and one on another machine.
func runningOwner() string {
	owner := server.Us()
	owner.Run = "running"
	return owner.Encode()
}

func endedOwner() string {
	owner := server.Us()
	owner.Run = "ended"
	owner.Process = "none"
	return owner.Encode()
}

func farOwner() string {
	return server.Owner{Run: "far", Machine: "another", Host: "far.example", PID: 7}.Encode()
}

// TestLease: a scope that is free, or whose owner has ended, is entered. One that another process uses is not.
func TestLease(t *testing.T) {
	const busy = "take a lease on qb:a: it is in use by another run"
	for name, c := range map[string]struct {
		prepare func(b *board)
		refused string
		keys    int64 // that are left
	}{
		"free":       {func(b *board) { b.keys["a"] = 2 }, "", 2},
		"its own":    {func(b *board) { b.put("a", server.Us().Encode(), true) }, "", 2},
		"in use":     {func(b *board) { b.put("a", runningOwner(), true) }, busy + " (process ", 2},
		"left":       {func(b *board) { b.put("a", endedOwner(), false) }, "", 0},
		"far":        {func(b *board) { b.put("a", farOwner(), true) }, busy + " (process 7 on far.example", 2},
		"far, ended": {func(b *board) { b.put("a", farOwner(), false) }, "", 0},
		"of no run": {func(b *board) {
			b.put("a", farOwner(), false)
			b.hidden = true
		}, busy, 2},
		"taken meanwhile": {func(b *board) {
			b.put("a", endedOwner(), false)
			b.amid = func() { b.entries["a"] = leases.Entry{Scope: "a", Text: farOwner(), Version: 2} }
		}, busy, 2},
		"not answered": {func(b *board) { b.failing["enter"] = errors.New("no answer") },
			"take a lease on qb:a: no answer", 0},
	} {
		b := newBoard()
		c.prepare(b)
		_, store := shared(t, b)
		err := store.Lease(t.Context(), "a")
		if refused := err != nil; refused != (c.refused != "") || refused && !strings.HasPrefix(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
		if ours := b.entries["a"].Text == server.Us().Encode(); ours != (c.refused == "") {
			t.Errorf("%s: the entry is %q", name, b.entries["a"].Text)
		}
		if b.keys["a"] != c.keys {
			t.Errorf("%s: %d keys are left, want %d", name, b.keys["a"], c.keys)
		}
	}
}

// TestRenewals: all leases are renewed from time to time, until the last one is given up or the store is closed.
func TestRenewals(t *testing.T) {
	server.Us()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		s, store := shared(t, b)
		_ = store.Lease(t.Context(), "b")
		_ = store.Lease(t.Context(), "a")
		time.Sleep(2*server.LeaseRenewal + server.LeaseRenewal/2)
		_ = store.Wipe(t.Context(), "a")
		_ = store.Wipe(t.Context(), "b")
		time.Sleep(5 * server.LeaseRenewal)
		_ = store.Lease(t.Context(), "c")
		s.Renew(t.Context())
		_ = s.End(func() error { return nil })
		time.Sleep(5 * server.LeaseRenewal)
		want := []string{"renew []", "renew []", "renew [a b]", "renew [a b]", "leave a false", "leave b true",
			"renew []", "renew [c]"}
		if !slices.Equal(b.calls, want) {
			t.Errorf("%q, want %q", b.calls, want)
		}
	})
}

// TestOwed: what could not be removed is removed by the next Prepare, or by End with a new client.
func TestOwed(t *testing.T) {
	b := newBoard()
	s, store := shared(t, b)
	reconnected := false
	s.Reconnect = func(context.Context) error {
		reconnected = true
		return nil
	}
	leave := func(scope stores.Scope) {
		if _, err := store.Prepare(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		b.keys[scope] = 3
		b.failing["clear"] = errors.New("no answer")
		if err := store.Wipe(t.Context(), scope); !errors.Is(err, b.failing["clear"]) {
			t.Errorf("%v", err)
		}
		b.keys[scope] = 3 // which were not removed
		delete(b.failing, "clear")
	}
	leave("a")
	if _, err := store.Prepare(t.Context(), "b"); err != nil || b.keys["a"] != 0 || b.entries["a"].Text != "" {
		t.Errorf("%v: the keys %v and %v", err, b.keys, b.entries)
	}
	b.keys["a"] = 5 // of another run
	leave("c")
	b.failing["renew"] = errors.New("no answer") // although the entry may be there
	if err := store.Lease(t.Context(), "d"); !errors.Is(err, b.failing["renew"]) {
		t.Errorf("%v", err)
	}
	b.keys["d"] = 1
	err := s.End(func() error { return nil })
	if want := map[stores.Scope]int64{"a": 5}; err != nil || !reconnected || !maps.Equal(b.keys, want) {
		t.Errorf("%v: reconnected: %t, the keys %v, want %v", err, reconnected, b.keys, want)
	}
}

// TestEnd: only the first call does anything, and all return what went wrong.
func TestEnd(t *testing.T) {
	b := newBoard()
	s, store := shared(t, b)
	b.failing["clear"] = errors.New("no answer")
	_ = store.Wipe(t.Context(), "a")
	ends := 0
	for range 2 {
		err := s.End(func() error {
			ends++
			return errors.New("no client")
		})
		want := "close redis: no answer: quotabench doctor --clean removes what is left\nno client"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if ends != 1 {
		t.Errorf("the clients are ended %d times", ends)
	}
}

func TestHoldings(t *testing.T) {
	b := newBoard()
	_, store := shared(t, b)
	b.put("d", farOwner(), true)
	b.put("b", endedOwner(), false)
	b.put("c", "nonsense", true)
	b.keys["a"] = 9
	for thorough, want := range map[bool]string{
		false: "b left 0, c unknown 0, d in use 0",
		true:  "b left 2, c unknown 2, d in use 2, a unknown 9",
	} {
		all, err := store.Holdings(t.Context(), thorough)
		var got []string
		for _, holding := range all {
			got = append(got, fmt.Sprintf("%s %s %d", holding.Scope, holding.State, holding.Keys))
			if holding.Name != b.Name(holding.Scope) || (holding.Owner == "") != (holding.State == stores.HeldUnknown) {
				t.Errorf("%+v", holding)
			}
		}
		if text := strings.Join(got, ", "); err != nil || text != want {
			t.Errorf("thorough: %t: %s, %v, want %s", thorough, text, err, want)
		}
	}
	for method, want := range map[string]string{"entries": "look for what runs left: no answer",
		"count": "look for what has no lease: no answer"} {
		b.failing = map[string]error{method: errors.New("no answer")}
		if _, err := store.Holdings(t.Context(), true); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDiscard: what nobody uses is removed, and counted. What somebody has taken over since it was listed stays.
func TestDiscard(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		renewed bool
		amid    func(b *board)
		removed int64
	}{
		"left":    {endedOwner(), false, nil, 2},
		"in use":  {runningOwner(), true, nil, 0},
		"unknown": {"", false, nil, 2},
		"taken over since": {endedOwner(), false, func(b *board) {
			b.entries["a"] = leases.Entry{Scope: "a", Text: runningOwner(), Version: 2, Renewed: true}
		}, 0},
		"left by another since": {endedOwner(), false, func(b *board) {
			b.entries["a"] = leases.Entry{Scope: "a", Text: farOwner(), Version: 2}
		}, 0},
		"renewed since": {farOwner(), false, func(b *board) {
			b.entries["a"] = leases.Entry{Scope: "a", Text: farOwner(), Version: 1, Renewed: true}
		}, 0},
		"taken over amid it": {endedOwner(), false, func(b *board) {
			b.amid = func() { b.entries["a"] = leases.Entry{Scope: "a", Text: runningOwner(), Version: 2} }
		}, 0},
	} {
		b := newBoard()
		_, store := shared(t, b)
		b.keys["a"] = 2
		if c.text != "" {
			b.put("a", c.text, c.renewed)
		}
		all, err := store.Holdings(t.Context(), true)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %+v, %v", name, all, err)
		}
		if c.amid != nil {
			c.amid(b)
		}
		removed, err := store.Discard(t.Context(), all[0])
		_, entered := b.entries["a"]
		if err != nil || removed != c.removed || b.keys["a"] != 2-removed || entered == (removed > 0) {
			t.Errorf("%s: %d removed, %v, %d keys left, entered: %t", name, removed, err, b.keys["a"], entered)
		}
	}
}

// TestUnshared: a server of this process alone has no leases, and a replica's keys are its primary's.
func TestUnshared(t *testing.T) {
	s := leases.Self{Kind: "redis", Usage: func(context.Context, stores.Scope) (stores.Usage, error) {
		return stores.Usage{Keys: 4}, nil
	}, Remove: func(context.Context, stores.Scope) error { return errors.New("no answer") }}
	store := s.Common()
	holdings, err := store.Holdings(t.Context(), true)
	if leased := store.Lease(t.Context(), "a"); leased != nil || err != nil || holdings != nil || s.Shared() {
		t.Errorf("%v, %v, %v", leased, err, holdings)
	}
	if strays, err := store.Prepare(t.Context(), "a"); strays != 4 || err != nil {
		t.Errorf("%d keys, %v", strays, err)
	}
	if err := store.Wipe(t.Context(), ""); err == nil || err.Error() != "wipe redis: an empty scope" {
		t.Errorf("%v", err)
	}
	s.Replica = true
	if strays, err := store.Prepare(t.Context(), "a"); strays != 0 || err != nil || !store.Follows() {
		t.Errorf("%d keys of a replica, %v", strays, err)
	}
	if err := store.Wipe(t.Context(), "a"); err != nil {
		t.Errorf("of a replica: %v", err)
	}
}

// own is a server that was started here, or in a container that has other numbers of processes.
type own struct {
	server.Server
	local bool
}

func (o own) PID() int    { return 12 }
func (o own) Local() bool { return o.local }

func (o own) Processes(context.Context) ([]int, error) { return []int{12, 13}, nil }

func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		own       server.Server
		addr      string
		want      stores.Place
		pid       int
		stopped   error // of the fault
		restarted string
	}{
		"started":           {own{local: true}, "127.0.0.1:1", stores.StartedHere, 12, nil, "redis of this kind cannot be"},
		"in a container":    {own{}, "127.0.0.1:1", stores.Elsewhere, 12, server.ErrNotOurs, ""},
		"on this host":      {nil, "127.0.0.1:1,/run/redis.sock", stores.OnThisHost, 0, server.ErrNotOurs, ""},
		"partly on another": {nil, "127.0.0.1:1,192.0.2.1:1", stores.Elsewhere, 0, server.ErrNotOurs, ""},
	} {
		self := leases.Self{Kind: "redis", Own: c.own, About: stores.Info{Addr: c.addr}}
		store := self.Common()
		if store.Place() != c.want || store.PID() != c.pid || store.Owned() != (c.own != nil) {
			t.Errorf("%s: %s, process %d, owned: %t", name, store.Place(), store.PID(), store.Owned())
		}
		if _, err := store.Processes(t.Context()); (err == nil) != (c.own != nil) {
			t.Errorf("%s: processes: %v", name, err)
		}
		if err := store.CanBreak(t.Context(), leases.Stopped); !errors.Is(err, c.stopped) {
			t.Errorf("%s: stopped: %v", name, err)
		}
		if err := store.CanBreak(t.Context(), leases.Restarted); err == nil || !strings.HasPrefix(err.Error(), c.restarted) {
			t.Errorf("%s: restarted: %v", name, err)
		}
	}
	self := leases.Self{Kind: "redis", Own: own{local: true}}
	err := self.Common().CanBreak(t.Context(), "molten")
	if want := "there is no fault molten of redis"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}
