package workloads

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/quota"
)

var registry struct {
	mu    sync.RWMutex
	metas []*Meta
}

// Register adds a workload to those that every command offers. It is called from
// init functions and panics if the Meta is incomplete, with all that is missing, or if
// its name is taken.
func Register(meta Meta) {
	if err := meta.validate(); err != nil {
		panic("workloads.Register: " + err.Error())
	}
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, r := range registry.metas {
		if r.Name == meta.Name {
			panic("workloads.Register: " + meta.Name + " is registered twice")
		}
		if err := meta.agrees(r); err != nil {
			panic("workloads.Register: " + err.Error())
		}
	}
	registry.metas = append(registry.metas, &meta)
}

// All returns every registered workload in the order of registration. The slice
// is the caller's own.
func All() []*Meta {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	return slices.Clone(registry.metas)
}

// Lookup returns the workload with the given name. The error lists all names.
func Lookup(name string) (*Meta, error) {
	var names []string
	for _, meta := range All() {
		if meta.Name == name {
			return meta, nil
		}
		names = append(names, meta.Name)
	}
	return nil, quota.Unknown("workload", name, names, "")
}

// validate reports everything that is missing or wrong in a Meta, in one line.
func (m *Meta) validate() error {
	var wrong []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	name := m.Name
	if name == "" || strings.ContainsAny(name, ",:= ") {
		add(true, "Name is empty or contains one of \",:= \"")
		name = strconv.Quote(name)
	}
	add(m.Doc == "", "Doc is empty")
	add(m.Loop != Closed && m.Loop != Open, "Loop is %q: closed or open", m.Loop)
	add(m.Loop == Open && m.Rate <= 0, "Rate is missing: it is an open loop")
	add(m.Make == nil, "Make is nil")
	add(m.Boundary && len(m.Kinds) == 0,
		"Kinds is empty: it needs a window's end and does not say which kinds of windows have one")
	seen := map[string]bool{}
	for _, option := range m.Options {
		if err := option.Validate(); err != nil {
			add(true, "%v", err)
		}
		add(seen[option.Name], "option %s is declared twice", option.Name)
		seen[option.Name] = true
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("workload %s: %s", name, strings.Join(wrong, "; "))
}

// agrees reports an option that another workload declares with another type.
func (m *Meta) agrees(other *Meta) error {
	for _, option := range m.Options {
		for _, x := range other.Options {
			if option.Name == x.Name && option.Type != x.Type {
				return fmt.Errorf("workload %s: option %s has the type %q, and %q in %s", m.Name, option.Name, option.Type, x.Type,
					other.Name)
			}
		}
	}
	return nil
}

// New makes the workload's stream. Errors say which option is wrong, or what is
// wrong with the trace.
func (m *Meta) New(params Params) (Stream, Info, error) {
	params, err := m.complete(params)
	if err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	stream, info, err := m.Make(params)
	if err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	return stream, info, nil
}
