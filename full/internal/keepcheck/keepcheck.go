// Package keepcheck tests what stores keep on servers of others.
package keepcheck

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// Kept is what [Keeps] does to a server that is not the program's own.
type Kept struct {
	Board leases.Board
	// Put makes one thing under a scope, and There looks for it.
	Put   func(ctx context.Context, scope stores.Scope) error
	There func(ctx context.Context, scope stores.Scope) bool
	// Vouch has the lease of another owner, who has entered a scope, run or run out.
	Vouch func(ctx context.Context, scope stores.Scope, run string, runs bool) error
	// Things are how many things one Put makes; a removal counts them.
	Things int64
}

// Keeps plants what processes keep that live, that died, that are elsewhere, and that are
// unknown: the dead's is removed, and nothing else.
func Keeps(t *testing.T, keeper stores.Keeper, k Kept) {
	t.Helper()
	ctx := t.Context()
	dead := server.Us()
	far := server.Us()
	dead.Run = "dead"
	dead.Process = "0" + dead.Process
	far.Run = "far"
	far.Machine = "another boot"
	far.Host = "far"
	if strays, err := keeper.Prepare(ctx, "mine"); strays != 0 || err != nil {
		t.Fatalf("%d strays, %v", strays, err)
	}
	k.enter(t, "dead", dead)
	k.enter(t, "far", far)
	must(t, k.Vouch(ctx, "far", far.Run, true))
	all := []stores.Scope{"mine", "dead", "far", "unknown"}
	for _, scope := range all {
		must(t, k.Put(ctx, scope))
	}
	if _, err := keeper.Prepare(ctx, "mine"); err != nil {
		t.Errorf("a scope of ours a second time: %v", err)
	}
	if _, err := keeper.Prepare(ctx, "far"); err == nil ||
		!strings.Contains(err.Error(), "in use by another run (process ") {
		t.Errorf("a scope that is in use: %v", err)
	}
	requireStates(t, keeper, "dead left", "far in use", "mine in use", "unknown unknown")
	must(t, k.Vouch(ctx, "far", far.Run, false))
	requireStates(t, keeper, "dead left", "far left", "mine in use", "unknown unknown")
	did, err := stores.RemoveDead(ctx, keeper)
	if want := "removed " + stores.Amount(keeper.Driver(), 2*k.Things) + " that 2 runs left"; err != nil ||
		!strings.HasPrefix(did, want) {
		t.Errorf("%q (%v), want %q", did, err, want)
	}
	for _, scope := range all {
		if got, want := k.There(ctx, scope), scope == "mine" || scope == "unknown"; got != want {
			t.Errorf("what is under %s is there: %t, want %t", scope, got, want)
		}
	}
	requireStates(t, keeper, "mine in use", "unknown unknown")

	// The server loses the entry, and gets it back.
	must(t, k.Board.Leave(ctx, "mine", true))
	requireStates(t, keeper, "mine unknown", "unknown unknown")
	must(t, k.Board.Renew(ctx, []stores.Scope{"mine"}))
	requireStates(t, keeper, "mine in use", "unknown unknown")

	k.takesOver(t, keeper, dead)
}

// enter has an owner enter a scope.
func (k Kept) enter(t *testing.T, scope stores.Scope, owner server.Owner) {
	t.Helper()
	if done, err := k.Board.Enter(t.Context(), leases.Entry{Scope: scope}, owner.Encode()); err != nil || !done {
		t.Fatalf("enter %s: %t, %v", scope, done, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// takesOver requires that a scope of the dead is taken over, without what it held, and that
// everything can be discarded.
func (k Kept) takesOver(t *testing.T, keeper stores.Keeper, dead server.Owner) {
	t.Helper()
	ctx := t.Context()
	must(t, keeper.Wipe(ctx, "mine"))
	k.enter(t, "again", dead)
	must(t, k.Put(ctx, "again"))
	if strays, err := keeper.Prepare(ctx, "again"); strays != 0 || err != nil {
		t.Errorf("take over: %d strays, %v", strays, err)
	}
	requireStates(t, keeper, "again in use", "unknown unknown")
	must(t, keeper.Wipe(ctx, "again"))
	found, err := keeper.Holdings(ctx, true)
	must(t, err)
	for _, holding := range found {
		if _, err := keeper.Discard(ctx, holding); err != nil {
			t.Error(err)
		}
	}
	requireStates(t, keeper)
}

func requireStates(t *testing.T, keeper stores.Keeper, want ...string) {
	t.Helper()
	found, err := keeper.Holdings(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, holding := range found {
		got = append(got, string(holding.Scope)+" "+string(holding.State))
		if holding.State != stores.HeldUnknown && !strings.Contains(holding.Owner, "process ") {
			t.Errorf("owner %q", holding.Owner)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("holdings %q, want %q", got, want)
	}
}

// CloseEnds opens a server of our own in a directory and closes it twice: its process
// is among those that it names, and nothing is left in the directory.
func CloseEnds(t testing.TB, open func(options stores.Options) (Process, error)) {
	t.Helper()
	dir := storecheck.Enterable(t)
	process, err := open(stores.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if pids, err := process.Processes(t.Context()); err != nil || len(pids) == 0 || pids[0] != process.PID() {
		t.Errorf("processes %v (%v) of %d", pids, err, process.PID())
	}
	for range 2 { // the second time it does nothing
		if err := process.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

// Process is a store that may be a child of ours.
type Process interface {
	stores.Store
	stores.Placed
	PID() int
}
