package workloads

import (
	"errors"
	"fmt"
	"math"
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
	}
	return nil
}

// New makes the workload's stream. Errors say which parameter is wrong, or what
// is wrong with the trace.
func (m *Meta) New(p Params) (Stream, Info, error) {
	if err := m.refuse(p); err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	if p.Subjects == 0 {
		p.Subjects = m.Subjects
	}
	if p.Zipf == nil {
		p.Zipf = new(m.Zipf)
	}
	if p.OverQuota == nil {
		p.OverQuota = new(m.OverQuota)
	}
	err := p.check()
	if err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	s, info, err := m.Make(p)
	if err != nil {
		return nil, Info{}, fmt.Errorf("workload %s: %w", m.Name, err)
	}
	return s, info, nil
}

// refuse reports parameters that the workload has no use for, which would
// otherwise look as if they had been heeded, and those that it misses.
func (m *Meta) refuse(p Params) error {
	switch {
	case m.NeedsTrace && p.Trace == "":
		return errors.New("no trace file given: name one with --trace FILE")
	case !m.NeedsTrace && p.Trace != "":
		return fmt.Errorf("it generates its requests and takes no trace file, but %s is given", p.Trace)
	case !m.NeedsTrace && p.Speed != 0:
		return errors.New("it has no recorded time and takes no speed")
	case m.Subjects == 0 && (p.Subjects != 0 || p.Zipf != nil || p.OverQuota != nil):
		return errors.New("it decides on its subjects itself and takes no number, popularity or over-quota share of them")
	}
	return nil
}

// check reports the first field of complete parameters that is out of bounds.
func (p Params) check() error {
	switch {
	case p.Policy == nil:
		return errors.New("no policy given")
	case p.Policy.Limit < 1 || p.Policy.Limit > maxLimit:
		return fmt.Errorf("the limit is %d, not from 1 to %d", p.Policy.Limit, int64(maxLimit))
	case p.Subjects < 0 || p.Subjects > maxSubjects:
		return fmt.Errorf("%d subjects, not from 1 to %d", p.Subjects, maxSubjects)
	case p.Requests < 0:
		return fmt.Errorf("%d requests, not at least 1", p.Requests)
	case !(*p.Zipf >= 0 && *p.Zipf <= maxZipf):
		return fmt.Errorf("zipf exponent %v is not from 0 to %v", *p.Zipf, maxZipf)
	case !(*p.OverQuota >= 0 && *p.OverQuota <= 1):
		return fmt.Errorf("over-quota share %v is not from 0 to 1", *p.OverQuota)
	case !(p.Speed >= 0) || math.IsInf(p.Speed, 0):
		return fmt.Errorf("speed %v is not a number above 0", p.Speed)
	}
	for _, cost := range p.Policy.Costs {
		if cost < 1 || cost > maxCost {
			return fmt.Errorf("policy %s has a cost of %d units, not from 1 to %d", p.Policy.Name, cost, int64(maxCost))
		}
	}
	return nil
}

// Bounds of parameters. They keep sums of units, and the integer arithmetic of
// the popularity table, inside of 64 bits.
const (
	maxLimit    = 1 << 60
	maxCost     = 1e15
	maxSubjects = 1 << 22
	maxZipf     = 4.0
)
