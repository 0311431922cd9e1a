package workloads

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Bounds of parameters. They keep sums of units, and the integer arithmetic of
// the tables, inside of 64 bits.
const (
	maxLimit    = 1 << 60
	maxCost     = 1e15
	maxSubjects = 1 << 22
	maxZipf     = 4.0
	maxMean     = 24 * time.Hour
)

// ServesPolicy returns nil if the workload makes sense with p, and otherwise why
// it does not.
func (m *Meta) ServesPolicy(p *quota.Policy) error {
	if m.Kinds == nil || slices.Contains(m.Kinds, p.Window.Kind) {
		return nil
	}
	names := make([]string, len(m.Kinds))
	for i, k := range m.Kinds {
		names[i] = k.String()
	}
	return fmt.Errorf("policy %s has a %s window; %s is for %s", p.Name, p.Window.Kind, m.Name, strings.Join(names, ", "))
}

// refuse reports parameters that the workload has no use for, which would
// otherwise look as if they had been heeded, those that contradict each other,
// and those that it misses.
func (m *Meta) refuse(p Params) error {
	switch {
	case m.NeedsTrace && p.Trace == "":
		return errors.New("no trace file given: name one with --trace FILE")
	case !m.NeedsTrace && p.Trace != "":
		return fmt.Errorf("it generates its requests and takes no trace file, but %s is given", p.Trace)
	case !m.NeedsTrace && p.Speed != 0:
		return errors.New("it has no recorded time and takes no speed")
	case !m.NeedsTrace && p.Cost == "recorded":
		return errors.New("it has no recorded costs: cost recorded is for traces")
	case m.Subjects == 0 && (p.Subjects != 0 || p.Popularity != "" || p.OverQuota != nil):
		return errors.New("it decides on its subjects itself and takes no number, popularity or over-quota share of them")
	case !m.GivesBack && (p.FailShare != nil || p.AbandonShare != nil || p.MisjudgedShare != nil || p.Settle != nil || p.Hold != nil):
		return errors.New("nothing follows its requests: it takes no share of failed, abandoned or misjudged ones, and no time to settle or to hold")
	case p.Fill == 1 && p.OverQuota != nil && *p.OverQuota < 1:
		return fmt.Errorf("a fill of 1 puts every check over quota, which contradicts the over-quota share %v", *p.OverQuota)
	}
	return nil
}

// complete fills in the defaults of what was not given.
func (m *Meta) complete(p Params) Params {
	p.given = given{subjects: p.Subjects != 0, popularity: p.Popularity != ""}
	if p.Popularity == "" {
		p.Popularity = m.Popularity
	}
	if p.Subjects == 0 {
		p.Subjects = m.Subjects
		if p.Popularity == "single" {
			p.Subjects = 1
		}
	}
	if p.Cost == "" {
		p.Cost = m.Cost
	}
	if p.Cost == "" {
		p.Cost = "policy"
	}
	setDefault(&p.OverQuota, m.OverQuota)
	setDefault(&p.FailShare, m.FailShare)
	setDefault(&p.AbandonShare, m.AbandonShare)
	setDefault(&p.MisjudgedShare, m.MisjudgedShare)
	setDefault(&p.Settle, m.Settle)
	setDefault(&p.Hold, m.Hold)
	return p
}

func setDefault[T any](v **T, d T) {
	if *v == nil {
		*v = &d
	}
}

// given are the parameters that did not come from defaults, where that makes a
// difference: what was asked for explicitly is refused where it cannot be heeded.
type given struct{ subjects, popularity bool }

// check reports the first field of complete parameters that is out of bounds.
func (m *Meta) check(p Params) error {
	switch {
	case p.Policy == nil:
		return errors.New("no policy given")
	case p.Policy.Limit < 1 || p.Policy.Limit > maxLimit:
		return fmt.Errorf("the limit is %d, not from 1 to %d", p.Policy.Limit, int64(maxLimit))
	case p.Subjects < 0 || p.Subjects > maxSubjects:
		return fmt.Errorf("%d subjects, not from 1 to %d", p.Subjects, maxSubjects)
	case p.Requests < 0:
		return fmt.Errorf("%d requests, not at least 1", p.Requests)
	case !(p.Speed >= 0) || math.IsInf(p.Speed, 0):
		return fmt.Errorf("speed %v is not a number above 0", p.Speed)
	case *p.FailShare+*p.AbandonShare > 1:
		return fmt.Errorf("the shares of failed and abandoned sessions, %v and %v, are more than 1 together", *p.FailShare, *p.AbandonShare)
	}
	for _, s := range []struct {
		name  string
		value float64
	}{
		{"over-quota share", *p.OverQuota}, {"fill", p.Fill}, {"share of failed sessions", *p.FailShare},
		{"share of abandoned sessions", *p.AbandonShare}, {"share of misjudged commits", *p.MisjudgedShare},
	} {
		if !(s.value >= 0 && s.value <= 1) {
			return fmt.Errorf("%s %v is not from 0 to 1", s.name, s.value)
		}
	}
	for _, d := range []struct {
		name string
		mean time.Duration
	}{{"settle", *p.Settle}, {"hold", *p.Hold}} {
		if d.mean < 0 || d.mean > maxMean {
			return fmt.Errorf("mean time to %s of %v is not from 0 to %v", d.name, d.mean, maxMean)
		}
	}
	for _, c := range p.Policy.Costs {
		if c < 1 || c > maxCost {
			return fmt.Errorf("policy %s has a cost of %d units, not from 1 to %d", p.Policy.Name, c, int64(maxCost))
		}
	}
	if err := m.ServesPolicy(p.Policy); err != nil {
		return err
	}
	return p.checkForms()
}

func (p Params) checkForms() error {
	if _, err := parseCost(p.Cost); err != nil {
		return err
	}
	if p.Popularity == "" { // the workload decides
		return nil
	}
	who, err := parsePopularity(p.Popularity)
	if err != nil {
		return err
	}
	return who.fits(p.Subjects)
}
