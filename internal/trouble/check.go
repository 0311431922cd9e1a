package trouble

import (
	"errors"
	"fmt"
	"time"
)

// Check reports the first event that no run of that length with so many instances can have. A length of 0
// is that of a run that ends after a number of requests.
func (l List) Check(instances int, length time.Duration) error {
	for i, event := range l {
		if read, err := Parse(event.String()); err != nil {
			return err
		} else if read != event {
			return fmt.Errorf("%s has values that do not belong to it: %+v", event, event)
		}
		if err := event.check(instances, length); err != nil {
			return err
		}
		for j := range l[:i] {
			if err := event.goesWith(&l[j]); err != nil {
				return fmt.Errorf("%s and %s: %w", l[j], event, err)
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
		return fmt.Errorf("%s begins %v after the run does, and the replica cannot be further behind: give %s, or less", e,
			at, fits)
	}
	return nil
}

// goesWith reports an event that another one leaves no room for.
func (e *Event) goesWith(event *Event) error {
	kind := e.Kind()
	if kind != event.Kind() {
		return nil
	}
	switch kind {
	case Outage:
		if e.Where == event.Where && e.When.From < event.When.To && event.When.From < e.When.To {
			return errors.New("they overlap, and a store that is away cannot be taken away: give one event for both")
		}
	case Change:
		if e.When == event.When {
			return errors.New("they are at the same time: leave one of them out")
		}
	case Kill:
		return errors.New("callers are killed in one way: leave one of them out")
	case Skew:
		if e.Where == event.Where || e.Where.Instance == All || event.Where.Instance == All {
			return errors.New("an instance has one clock: leave one of them out")
		}
	}
	return nil
}
