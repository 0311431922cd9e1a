package stores

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Further is a store in addition to the main one of its kind.
type Further struct {
	// Name of the store, e.g. "redis.2" or "postgres.replica".
	Name string
	// Spec that it was given; empty if a strategy needs it and nothing was said.
	Spec string
	// Main is the run's store that is named after the driver alone, and MainSpec what
	// it was opened by, if Spec is empty. Main is nil if there is none.
	Main     Store
	MainSpec string
	Options  Options
}

// Role is what stands behind the first dot of the name, e.g. "replica".
func (f *Further) Role() string {
	_, role, _ := strings.Cut(f.Name, ".")
	return role
}

// Follower is a [Store] that may be a replica of another one.
type Follower interface {
	Store
	// Follows reports whether it is a replica: all that it holds comes from another
	// store, and nothing is to be written to it. Its Prepare and Wipe do nothing.
	Follows() bool
	// CatchUp waits until the replica has all that its primary had when it was called.
	CatchUp(ctx context.Context, primary Store) error
}

// FailsOver is a [Store] with a replica that can take its place in mid-run.
type FailsOver interface {
	Store
	// CanFailOver returns nil, or why the store cannot do what follows. behind is how long before its master dies
	// the replica is to get its last write, and left is for how long the run goes on afterwards.
	CanFailOver(behind, left time.Duration) error
	// Replicate waits until the replica has all that was written when it was called.
	Replicate(ctx context.Context) error
	// Lag has each write arrive at the replica so much later from now on, until FailOver, which loses what is on its way,
	// or Recover. It is false if the replica cannot be kept so: then Detach leaves it behind.
	Lag(ctx context.Context, behind time.Duration) (bool, error)
	// Detach ends the flow of writes to the replica: what is written from then on is not
	// there when it takes the store's place.
	Detach(ctx context.Context) error
	// FailOver ends the server as if it had died, and lets the replica take its place with
	// what it has got. Connections break; those that clients, old ones too, open from then
	// on lead to the new master.
	FailOver(ctx context.Context) error
	// Recover gives the store a replica again, after FailOver or Detach, and does nothing
	// after neither. Nothing else may use the store meanwhile.
	Recover(ctx context.Context) error
}

// Breakable is a [Store] that something can be done to on purpose in mid-run, if it was started here. Faults are those
// of an outage: "stopped", "restarted", and others of its kind.
type Breakable interface {
	Store
	// CanBreak returns nil, or why the fault cannot befall the store.
	CanBreak(ctx context.Context, fault string) error
	// Break inflicts the fault, on no more than what is kept under scope if it can be told apart. Mend ends it, and
	// returns when the store answers again.
	Break(ctx context.Context, fault string, scope Scope) (mend func(context.Context) error, err error)
}

// PrimaryOf is the name of the store whose replica has that name: of
// "redis.replica" it is "redis". ok is false for other names.
func PrimaryOf(name string) (primary string, ok bool) {
	return strings.CutSuffix(name, ".replica")
}

// OpenNeeded opens the stores that are needed: those with a spec by it, and others by
// [Driver.Further]. Specs that are not optional are always opened, and optional ones
// also if a needed store without a spec is opened like them.
//
// A store without a spec that is not available is absent from the set, with the reason.
// A spec that cannot be opened is an error.
func OpenNeeded(ctx context.Context, specs []Spec, needed []string) (*Set, error) {
	mains := map[string]Spec{}
	set := NewSet()
	// Others may be replicas of the main ones.
	specs = slices.SortedStableFunc(slices.Values(specs), func(a, b Spec) int {
		return cmp.Compare(strings.Count(a.Name, "."), strings.Count(b.Name, "."))
	})
	for _, spec := range specs {
		mains[spec.Name] = spec
		if spec.Optional && !serves(spec.Name, specs, needed) {
			continue
		}
		err := set.open(ctx, spec)
		if err != nil && spec.Optional && ctx.Err() == nil {
			err = set.lacks(spec.Name, err)
		}
		if err != nil {
			return nil, closing(set, err)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(needed))) {
		if set.free(name) != nil {
			continue
		}
		driver, err := DriverOf(name)
		if err == nil {
			err = set.further(ctx, driver, name, mains[driver.Name])
		}
		if err != nil && ctx.Err() == nil {
			err = set.lacks(name, err)
		}
		if err != nil {
			return nil, closing(set, err)
		}
	}
	return set, nil
}

// lacks records why a store cannot be had.
func (s *Set) lacks(name string, why error) error {
	return s.AddAbsent(name, Info{Kind: KindNone, Detail: strings.ReplaceAll(why.Error(), "\n", "; ")})
}

// serves reports whether a main store is needed, or is that of a needed one for
// which there is no spec.
func serves(main string, specs []Spec, needed []string) bool {
	return slices.ContainsFunc(needed, func(name string) bool {
		kind, _, _ := strings.Cut(name, ".")
		given := slices.ContainsFunc(specs, func(spec Spec) bool { return spec.Name == name })
		return name == main || kind == main && !given
	})
}

func (s *Set) further(ctx context.Context, driver *Driver, name string, main Spec) error {
	if driver.Further == nil || name == driver.Name {
		return fmt.Errorf("give it by --store %s=SPEC, where SPEC is %s", name, driver.Forms())
	}
	further := Further{Name: name, MainSpec: main.From, Options: main.Options}
	further.Main, _ = s.Get(driver.Name)
	store, err := driver.Further(ctx, further)
	if err != nil {
		return err
	}
	return s.Add(name, store)
}
