package isolate

import (
	"fmt"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Strategy is a registered strategy as one process tells it to another, with the time zone
// of its policy.
type Strategy struct {
	Name string
	Zone Zone
}

// Told is the strategy as it is told. The policy loses its time zone, which has no form in
// JSON.
func Told(sel strategies.Selection, policy *quota.Policy) (strategy Strategy, err error) {
	strategy.Name = sel.String()
	strategy.Zone, err = ZoneOf(policy.Window.Location)
	policy.Window.Location = nil
	return strategy, err
}

// Select is the strategy in this process. The policy gets its time zone back.
func (s Strategy) Select(policy *quota.Policy) (sel strategies.Selection, err error) {
	chosen, err := strategies.Parse(s.Name)
	if err != nil || len(chosen) != 1 {
		return sel, fmt.Errorf("strategy %s is none of this program: %w", s.Name, err)
	}
	policy.Window.Location, err = s.Zone.Location()
	return chosen[0], err
}

// Zone is a time zone as one process tells it to another: [time.Location] has no form in
// JSON. The zero value is none.
type Zone struct {
	// Name is that of the location, by which it is loaded unless it is fixed.
	Name string
	// Fixed is set for a zone that keeps one offset forever, and Offset is that in
	// seconds east of UTC.
	Fixed  bool
	Offset int
}

// ZoneOf is the zone of a location, nil for none. A location that cannot be told by its
// name or its offset, as [time.LoadLocationFromTZData] may make one, is an error.
func ZoneOf(location *time.Location) (Zone, error) {
	if location == nil {
		return Zone{}, nil
	}
	if known, err := time.LoadLocation(location.String()); err == nil && location.String() != "" && same(location, known) {
		return Zone{Name: location.String()}, nil
	}
	_, offset := firstMoment.In(location).Zone()
	if fixed := time.FixedZone(location.String(), offset); same(location, fixed) {
		return Zone{Name: location.String(), Fixed: true, Offset: offset}, nil
	}
	return Zone{}, fmt.Errorf("the time zone %s of the policy is not the one that this system has of that name: give "+
		"one that time.LoadLocation or time.FixedZone makes", location)
}

// Location is the zone's, nil for none.
func (z Zone) Location() (*time.Location, error) {
	switch {
	case z.Fixed:
		return time.FixedZone(z.Name, z.Offset), nil
	case z.Name != "":
		return time.LoadLocation(z.Name)
	}
	return nil, nil
}

// The moments in which two locations are compared: those that nanoseconds since 1970 tell.
var (
	firstMoment = time.Unix(0, 0)
	lastMoment  = time.Unix(0, 1<<63-1)
)

// same reports whether clocks show the same in both locations at all times.
func same(a, b *time.Location) bool {
	for t := firstMoment; ; {
		nameA, offsetA := t.In(a).Zone()
		nameB, offsetB := t.In(b).Zone()
		_, endA := t.In(a).ZoneBounds()
		_, endB := t.In(b).ZoneBounds()
		switch {
		case nameA != nameB || offsetA != offsetB || !endA.Equal(endB):
			return false
		case endA.IsZero() || endA.After(lastMoment):
			return true
		}
		if !endA.After(t) { // as package time says of the last day of a leap year
			endA = t.Add(24 * time.Hour)
		}
		t = endA
	}
}
