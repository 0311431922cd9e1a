package stores

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
