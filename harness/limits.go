package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// LimitChange gives all subjects another limit in mid-run.
type LimitChange struct {
	// At is a share of the duration, above 0 and below 1.
	At float64
	// Limit in units, from then on.
	Limit int64
}

// ParseLimitChange reads "0.5:40": from half of the duration on, the limit is 40.
func ParseLimitChange(text string) (c LimitChange, err error) {
	at, limit, ok := strings.Cut(text, ":")
	var err1, err2 error
	c.At, err1 = strconv.ParseFloat(at, 64)
	c.Limit, err2 = strconv.ParseInt(limit, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return c, fmt.Errorf("%q is not of the form 0.5:40: when, in shares of the duration, and the limit from then on, in units", text)
	}
	return c, c.check()
}

func (c LimitChange) check() error {
	switch {
	case !(c.At > 0 && c.At < 1):
		return fmt.Errorf("the limit is to change at %g of the duration: give a share above 0 and below 1", c.At)
	case c.Limit < 1 || c.Limit > quota.MaxLimit:
		return fmt.Errorf("the limit is to become %d: give 1 to %d", c.Limit, int64(quota.MaxLimit))
	}
	return nil
}

// String renders the change as [ParseLimitChange] reads it.
func (c LimitChange) String() string { return fmt.Sprintf("%g:%d", c.At, c.Limit) }

// After is how long after the beginning of a run of that length the limit changes.
func (c LimitChange) After(length time.Duration) time.Duration {
	return time.Duration(c.At * float64(length))
}

func (p *Plan) checkLimitChanges() error {
	if len(p.LimitChanges) == 0 {
		return nil
	}
	if p.Duration == 0 {
		return errors.New("a limit that changes needs a duration to change in: give --duration")
	}
	last := 0.0
	for _, c := range p.LimitChanges {
		if err := c.check(); err != nil {
			return err
		}
		if c.At <= last {
			return errors.New("changes of the limit come one after the other: give them in the order of their time")
		}
		last = c.At
	}
	return nil
}

// LowestLimit is the lowest that is in force in a run: what a rejection is checked against
// if its request saw the limit change.
func (p *Plan) LowestLimit() int64 {
	lowest := p.Policy.Limit
	for _, c := range p.LimitChanges {
		lowest = min(lowest, c.Limit)
	}
	return lowest
}

// LimitedSubjects are the first n subjects of a stream if the strategy keeps limits
// of them, and none if it goes by those of the requests.
func (s *Session) LimitedSubjects(stream workloads.Stream, n int) []quota.Subject {
	if _, ok := s.Instances[0].(strategies.LimitSetter); !ok {
		return nil
	}
	out := make([]quota.Subject, n)
	for i := range out {
		out[i] = quota.Subject(stream.Name(uint32(i)))
	}
	return out
}

// setAtOnce is how many subjects' limits are set by one call.
const setAtOnce = 10_000

// SetLimit has the strategy change the limit of subjects to that of p, through each of
// the given instances, if it keeps limits at all.
func (s *Session) SetLimit(ctx context.Context, p *quota.Policy, subjects []quota.Subject, instances ...int) error {
	for _, i := range instances {
		l, ok := s.Instances[i].(strategies.LimitSetter)
		if !ok {
			return nil
		}
		for some := range slices.Chunk(subjects, setAtOnce) {
			if err := l.SetLimit(ctx, p, some); err != nil {
				return fmt.Errorf("set the limit of %d subjects to %d: %w", len(subjects), p.Limit, err)
			}
		}
	}
	return nil
}
