package workloads

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
)

// Bounds of parameters. They keep sums of units, and the integer arithmetic of
// the tables, inside of 64 bits.
const (
	maxCost     = 1e15
	maxSubjects = 1 << 22
	maxZipf     = 4.0
	maxMean     = 24 * time.Hour
)

// Params are what a workload is made from. Only Policy is required.
type Params struct {
	Seed uint64
	// Policy with the limit in force.
	Policy *quota.Policy
	// Requests bounds the stream; 0 leaves it to the workload.
	Requests int64
	// Speed is recorded seconds per second of a paced replay; 0 replays as fast
	// as the workers can. Only workloads with recorded time take one.
	Speed float64
	// Options are the given values of the workload's own options. In [Meta.Make]
	// every declared option has a value.
	Options quota.Options

	given quota.Options // what Options was before the defaults
}

// Set gives an option a value. It does not change copies of p.
func (p *Params) Set(option string, value any) {
	o := maps.Clone(p.Options)
	if o == nil {
		o = quota.Options{}
	}
	o[option] = fmt.Sprint(value)
	p.Options = o
}

// Given reports, inside of [Meta.Make], whether the option's value did not come
// from its default: what was asked for is refused if it cannot be heeded.
func (p Params) Given(option string) bool {
	_, ok := p.given[option]
	return ok
}

// Takes reports whether the workload declares the option.
func (m *Meta) Takes(option string) bool {
	return slices.ContainsFunc(m.Options, func(o quota.Option) bool { return o.Name == option })
}

// ServesPolicy returns nil if the workload makes sense with p, and otherwise why
// it does not.
func (m *Meta) ServesPolicy(p *quota.Policy) error {
	if m.Kinds == nil || slices.Contains(m.Kinds, p.Window.Kind) {
		return nil
	}
	names := format.List(m.Kinds, ", ", quota.Kind.String)
	return fmt.Errorf("policy %s has a %s window; %s is for %s", p.Name, p.Window.Kind, m.Name, names)
}

// complete checks p and fills in the defaults of the options that were not given.
func (m *Meta) complete(p Params) (Params, error) {
	switch {
	case p.Policy == nil:
		return p, errors.New("no policy given")
	case p.Policy.Limit < 1 || p.Policy.Limit > quota.MaxLimit:
		return p, fmt.Errorf("the limit is %d, not from 1 to %d", p.Policy.Limit, int64(quota.MaxLimit))
	case p.Requests < 0:
		return p, fmt.Errorf("%d requests, not at least 1", p.Requests)
	case !m.NeedsTrace && p.Speed != 0:
		return p, errors.New("it has no recorded time and takes no speed")
	case !(p.Speed >= 0) || math.IsInf(p.Speed, 0):
		return p, fmt.Errorf("speed %v is not a number above 0", p.Speed)
	}
	for _, c := range p.Policy.Costs {
		if c < 1 || c > maxCost {
			return p, fmt.Errorf("policy %s has a cost of %d units, not from 1 to %d", p.Policy.Name, c, int64(maxCost))
		}
	}
	p.given = p.Options
	var err error
	if p.Options, err = quota.Complete(m.Options, p.given); err != nil {
		return p, err
	}
	return p, m.ServesPolicy(p.Policy)
}
