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
	st, ok := s.all().stores[name]
	return st, ok
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
		d, err := DriverOf(name)
		switch {
		case err != nil:
			return nil, err
		case from == "":
			return nil, fmt.Errorf("store %s: nothing stands after the = sign: give %s", name, d.Forms())
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
	s := NewSet()
	for _, x := range specs {
		if err := s.open(ctx, x); err != nil {
			return nil, closing(s, err)
		}
	}
	return s, nil
}

// closing closes the set after an error.
func closing(s *Set, err error) error { return errors.Join(err, s.Close()) }

func (s *Set) open(ctx context.Context, x Spec) error {
	if err := s.free(x.Name); err != nil {
		return err
	}
	d, err := DriverOf(x.Name)
	if err != nil {
		return err
	}
	if x.From == "" {
		return d.Refuse("")
	}
	st, err := s.from(ctx, d, x)
	var absent *AbsentError
	switch {
	case errors.As(err, &absent):
		return s.AddAbsent(x.Name, absent.Reason)
	case err != nil && x.Name != d.Name:
		return fmt.Errorf("store %s: %w", x.Name, err)
	case err != nil:
		return err
	}
	if f, ok := st.(Follower); ok && f.Follows() {
		if _, replica := PrimaryOf(x.Name); !replica {
			why := fmt.Errorf("%s leads to a replica at %s, to which nothing can be written: give the address of its primary",
				d.Asked(""), st.Info().Addr)
			return errors.Join(why, st.Close())
		}
	}
	return s.Add(x.Name, st)
}

// from opens one store of a driver.
func (s *Set) from(ctx context.Context, d *Driver, x Spec) (Store, error) {
	if x.Name == d.Name || d.Further == nil {
		return d.Open(ctx, x.From, x.Options)
	}
	main, _ := s.Get(d.Name)
	return d.Further(ctx, Further{Name: x.Name, Spec: x.From, Main: main, Options: x.Options})
}
