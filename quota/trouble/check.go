package trouble

import (
	"errors"
	"fmt"
	"time"
)

// Check reports the first event that no run of that length with so many instances can have. A length of 0
// is that of a run that ends after a number of requests.
func (l List) Check(instances int, length time.Duration) error {
	for i, e := range l {
		if read, err := Parse(e.String()); err != nil {
			return err
		} else if read != e {
			return fmt.Errorf("%s has values that do not belong to it: %+v", e, e)
		}
		if err := e.check(instances, length); err != nil {
			return err
		}
		for j := range l[:i] {
			if err := e.goesWith(&l[j]); err != nil {
				return fmt.Errorf("%s and %s: %w", l[j], e, err)
			}
		}
	}
	return nil
}

// check reports an event that no such run can have.
func (e *Event) check(instances int, length time.Duration) error {
	fits := *e
	at, _ := e.When.Within(length)
	kind := e.Kind()
	switch {
	case e.Where.Instance >= instances:
		fits.Where.Instance = instances - 1
		return fmt.Errorf("%s: instances are 0 to %d, so give %s", e, instances-1, fits)
	case length == 0 && (e.When != Always || kind == Outage):
		return fmt.Errorf("%s needs a duration to be a share of: give --duration", e)
	case kind == Pause && e.What.For > length-at:
		fits.What.For = length - at
		return fmt.Errorf("%s does not end within the duration of %v: give %s, or less", e, length, fits)
	case kind == Outage && e.What.For > at:
		fits.What.For = at
		return fmt.Errorf("%s begins %v after the run does, and the replica cannot be further behind: give %s, or less", e, at, fits)
	}
	return nil
}

// goesWith reports an event that another one leaves no room for.
func (e *Event) goesWith(o *Event) error {
	kind := e.Kind()
	if kind != o.Kind() {
		return nil
	}
	switch kind {
	case Outage:
		if e.Where == o.Where && e.When.From < o.When.To && o.When.From < e.When.To {
			return errors.New("they overlap, and a store that is away cannot be taken away: give one event for both")
		}
	case Change:
		if e.When == o.When {
			return errors.New("they are at the same time: leave one of them out")
		}
	case Kill:
		return errors.New("callers are killed in one way: leave one of them out")
	case Skew:
		if e.Where == o.Where || e.Where.Instance == All || o.Where.Instance == All {
			return errors.New("an instance has one clock: leave one of them out")
		}
	}
	return nil
}
