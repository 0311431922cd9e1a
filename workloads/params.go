package workloads

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
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
	// Options are the given values of the workload's own options. In [Meta.Make]
	// every declared option has a value.
	Options quota.Options

	given quota.Options // what Options was before the defaults
}

// Set gives an option a value. It does not change copies of p.
func (p *Params) Set(option string, value any) {
	options := maps.Clone(p.Options)
	if options == nil {
		options = quota.Options{}
	}
	options[option] = fmt.Sprint(value)
	p.Options = options
}

// Speed is recorded seconds per second of a paced replay, which is an option of workloads with
// recorded time. 0 replays as fast as the workers can.
func (p Params) Speed() float64 {
	speed, err := strconv.ParseFloat(p.Options[speedOption], 64)
	if err != nil { // it is not given, or refused by the workload
		return 0
	}
	return speed
}

// speedOption is the name of the option that [Params.Speed] reads.
const speedOption = "speed"

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

// ServesPolicy returns nil if the workload makes sense with policy, and otherwise why
// it does not.
func (m *Meta) ServesPolicy(policy *quota.Policy) error {
	if m.Kinds == nil || slices.Contains(m.Kinds, policy.Window.Kind) {
		return nil
	}
	names := format.List(m.Kinds, ", ", quota.Kind.String)
	return fmt.Errorf("policy %s has a %s window; %s is for %s", policy.Name, policy.Window.Kind, m.Name, names)
}

// complete checks params and fills in the defaults of the options that were not given.
func (m *Meta) complete(params Params) (Params, error) {
	switch {
	case params.Policy == nil:
		return params, errors.New("no policy given")
	case params.Policy.Limit < 1 || params.Policy.Limit > quota.MaxLimit:
		return params, fmt.Errorf("the limit is %d, not from 1 to %d", params.Policy.Limit, int64(quota.MaxLimit))
	case params.Requests < 0:
		return params, fmt.Errorf("%d requests, not at least 1", params.Requests)
	}
	for _, c := range params.Policy.Costs {
		if c < 1 || c > maxCost {
			return params, fmt.Errorf("policy %s has a cost of %d units, not from 1 to %d", params.Policy.Name, c,
				int64(maxCost))
		}
	}
	params.given = params.Options
	var err error
	params.Options, err = quota.Complete(m.Options, params.given)
	if err != nil {
		return params, err
	}
	return params, m.ServesPolicy(params.Policy)
}

// The options that several of the built-in workloads declare. Flags, keys of
// configuration files and help texts are made from them.

// subjectOptions are those of workloads that draw subjects by popularity.
func subjectOptions(subjects int, popularity string) []quota.Option {
	return []quota.Option{
		{Name: "subjects", Type: "int", Min: "1", Max: fmt.Sprint(maxSubjects), Default: fmt.Sprint(subjects),
			Doc: "number of `subjects`"},
		{Name: "popularity", Default: popularity, Check: readable(parsePopularity),
			Doc: "popularity of subjects: " + popularityForms, Offer: []string{"single", "uniform", "zipf", "hot:"}},
	}
}

func costOption(form string) quota.Option {
	return quota.Option{Name: "cost", Default: form, Check: readable(parseCost),
		Doc: "`units` per request: " + costForms, Offer: []string{"policy", "constant:", "uniform:", "lognormal:", "recorded"}}
}

func fillOption() quota.Option {
	return shareOption("fill", 0, "`share` of its limit, 0 to 1, that every subject has used at the start")
}

func overQuotaOption(share float64) quota.Option {
	return shareOption("over-quota", share, "`share` of checks, 0 to 1, on subjects that start with their quota used up")
}

func shareOption(name string, share float64, doc string) quota.Option {
	return quota.Option{Name: name, Type: "float", Min: "0", Max: "1", Default: fmt.Sprint(share), Doc: doc}
}

// crowdOptions are those of workloads that are made by newCrowd.
func crowdOptions(subjects int, popularity string, overQuota float64) []quota.Option {
	return append(subjectOptions(subjects, popularity), costOption("policy"), fillOption(), overQuotaOption(overQuota))
}

// readable checks a form that parse reads.
func readable[T any](parse func(form string) (T, error)) func(form string) error {
	return func(form string) error {
		_, err := parse(form)
		return err
	}
}

// popularity of the subjects, and how many there are.
func (p Params) popularity() (who popularity, subjects int, err error) {
	who, err = parsePopularity(p.Options["popularity"])
	if err != nil {
		return who, 0, err
	}
	subjects = int(p.Options.Int("subjects"))
	if who.name == "single" && !p.Given("subjects") {
		subjects = 1
	}
	return who, subjects, who.fits(subjects)
}
