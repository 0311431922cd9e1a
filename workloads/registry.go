package workloads

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

var registry struct {
	mu sync.RWMutex
	m  []*Meta
}

// Register adds a workload to those that every command offers. It is called from
// init functions and panics if the Meta is incomplete or its name is taken.
func Register(m Meta) {
	if err := m.validate(); err != nil {
		panic("workloads.Register: " + err.Error())
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, r := range registry.m {
		if r.Name == m.Name {
			panic("workloads.Register: " + m.Name + " is registered twice")
		}
	}
	registry.m = append(registry.m, &m)
}

// All returns every registered workload in the order of registration. The slice
// is the caller's own.
func All() []*Meta {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	return slices.Clone(registry.m)
}

// Lookup returns the workload with the given name. The error lists all names.
func Lookup(name string) (*Meta, error) {
	var names []string
	for _, m := range All() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("unknown workload %q: one of %s", name, strings.Join(names, ", "))
}

func (m *Meta) validate() error {
	switch {
	case m.Name == "" || strings.ContainsAny(m.Name, ",:= "):
		return fmt.Errorf("workload name %q is empty or contains one of \",:= \"", m.Name)
	case m.Doc == "":
		return fmt.Errorf("workload %s has no Doc", m.Name)
	case m.Loop != Closed && m.Loop != Open:
		return fmt.Errorf("workload %s has the loop %q: closed or open", m.Name, m.Loop)
	case m.Loop == Open && m.Rate <= 0:
		return fmt.Errorf("workload %s is an open loop without a rate", m.Name)
	case m.Make == nil:
		return fmt.Errorf("workload %s has no Make", m.Name)
	case m.Subjects > 0 && m.Popularity == "":
		return fmt.Errorf("workload %s has subjects without a popularity", m.Name)
	case m.Boundary && len(m.Kinds) == 0:
		return fmt.Errorf("workload %s needs a window's end and does not say which kinds of windows have one", m.Name)
	}
	return nil
}

// New makes the workload's stream. Errors say which parameter is wrong, or what
// is wrong with the trace.
func (m *Meta) New(p Params) (Stream, Info, error) {
	if err := m.refuse(p); err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	p = m.complete(p)
	if err := m.check(p); err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	s, info, err := m.Make(p)
	if err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	return s, info, nil
}
