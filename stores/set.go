package stores

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Set is the open stores of a run by name. A nil Set is an empty one that takes
// nothing. Reading is safe for concurrent use, adding is not.
type Set struct {
	stores map[string]Store
	absent map[string]Info
	order  []string // of adding
}

// NewSet returns an empty Set.
func NewSet() *Set { return &Set{stores: map[string]Store{}, absent: map[string]Info{}} }

// Add puts a store in, which the set closes from then on. A name that is taken is
// an error.
func (s *Set) Add(name string, store Store) error {
	if err := s.free(name); err != nil {
		return err
	}
	s.stores[name] = store
	s.order = append(s.order, name)
	return nil
}

// AddAbsent records why there is no store of that name, e.g. that an in-process
// model stands in for PostgreSQL.
func (s *Set) AddAbsent(name string, reason Info) error {
	if err := s.free(name); err != nil {
		return err
	}
	s.absent[name] = reason
	return nil
}

func (s *Set) free(name string) error {
	if s == nil {
		return errors.New("stores: a nil Set takes nothing: make one with NewSet")
	}
	_, open := s.stores[name]
	_, absent := s.absent[name]
	switch {
	case name == "":
		return errors.New("stores: a store needs a name")
	case open || absent:
		return fmt.Errorf("stores: there are two stores of the name %s", name)
	}
	return nil
}

// all are the contents, which a nil Set does not have.
func (s *Set) all() Set {
	if s == nil {
		return Set{}
	}
	return *s
}

// Get returns the store of that name.
func (s *Set) Get(name string) (Store, bool) {
	store, ok := s.all().stores[name]
	return store, ok
}

// Absent returns what stands in for the store of that name, and why. ok is false
// for stores that are there and for names that were never asked for.
func (s *Set) Absent(name string) (reason Info, ok bool) {
	reason, ok = s.all().absent[name]
	return reason, ok
}

// Names are the names of the stores that are there, sorted.
func (s *Set) Names() []string {
	return slices.Sorted(maps.Keys(s.all().stores))
}

// AbsentNames are the names for which [Set.Absent] has a reason, sorted.
func (s *Set) AbsentNames() []string {
	return slices.Sorted(maps.Keys(s.all().absent))
}

// Close closes all stores, the last one added first.
func (s *Set) Close() (err error) {
	for _, name := range slices.Backward(s.all().order) {
		err = errors.Join(err, s.stores[name].Close())
	}
	return err
}

// Spec says where a named store of a run comes from.
type Spec struct {
	// Name of the store: that of its driver, alone or with a dot and a name of its
	// own, e.g. "redis", "redis.2", "redis.replica".
	Name string
	// From is a choice of the driver, e.g. "process", or a URL. It may hold a
	// password.
	From string
	// Options of the store.
	Options Options
	// Optional stores are opened by [OpenNeeded] only if they are needed, and may
	// then be missing: they are a driver's default and not what was asked for.
	Optional bool
}

// ParseSpecs reads texts of the form NAME=SPEC, e.g. "redis.2=process". Each must
// name a registered driver, and no name may come twice.
func ParseSpecs(texts []string) ([]Spec, error) {
	var specs []Spec
	seen := map[string]bool{}
	for _, text := range texts {
		name, from, ok := strings.Cut(text, "=")
		if !ok || strings.ContainsAny(name, ":/@") {
			// What is wrong may be a URL with a password: it is not shown.
			return nil, errors.New("a store is given as NAME=SPEC, e.g. redis.2=process")
		}
		driver, err := DriverOf(name)
		switch {
		case err != nil:
			return nil, err
		case from == "":
			return nil, fmt.Errorf("store %s: nothing stands after the = sign: give %s", name, driver.Forms())
		case seen[name]:
			return nil, fmt.Errorf("store %s is given twice", name)
		}
		seen[name] = true
		specs = append(specs, Spec{Name: name, From: from})
	}
	return specs, nil
}

// OpenSet opens stores in their order. A store that is neither available nor
// required is absent from the set, with the reason. If one cannot be opened,
// those before it are closed again.
func OpenSet(ctx context.Context, specs []Spec) (*Set, error) {
	set := NewSet()
	for _, spec := range specs {
		if err := set.open(ctx, spec); err != nil {
			return nil, closing(set, err)
		}
	}
	return set, nil
}

// closing closes the set after an error.
func closing(set *Set, err error) error { return errors.Join(err, set.Close()) }

func (s *Set) open(ctx context.Context, spec Spec) error {
	if err := s.free(spec.Name); err != nil {
		return err
	}
	driver, err := DriverOf(spec.Name)
	if err != nil {
		return err
	}
	if spec.From == "" {
		return driver.Refuse("")
	}
	store, err := s.from(ctx, driver, spec)
	var absent *AbsentError
	switch {
	case errors.As(err, &absent):
		return s.AddAbsent(spec.Name, absent.Reason)
	case err != nil && spec.Name != driver.Name:
		return fmt.Errorf("store %s: %w", spec.Name, err)
	case err != nil:
		return err
	}
	if follower, ok := store.(Follower); ok && follower.Follows() {
		if _, replica := PrimaryOf(spec.Name); !replica {
			why := fmt.Errorf("%s leads to a replica at %s, to which nothing can be written: give the address of its primary",
				driver.Asked(""), store.Info().Addr)
			return errors.Join(why, store.Close())
		}
	}
	return s.Add(spec.Name, store)
}

// from opens one store of a driver.
func (s *Set) from(ctx context.Context, driver *Driver, spec Spec) (Store, error) {
	if spec.Name == driver.Name || driver.Further == nil {
		return driver.Open(ctx, spec.From, spec.Options)
	}
	main, _ := s.Get(driver.Name)
	return driver.Further(ctx, Further{Name: spec.Name, Spec: spec.From, Main: main, Options: spec.Options})
}
