// Package stops reads when instances are to stand still or to restart, and how wrong their clocks are to be.
package stops

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stop is a pause of instances, or a restart.
type Stop struct {
	At, Pause time.Duration // since the start, and for how long; 0 restarts
	Instance  int           // or -1 for all
}

// Of reports whether an instance stops.
func (s Stop) Of(instance int) bool { return s.Instance < 0 || s.Instance == instance }

// form has a share below 1, how long a pause is, and an instance.
var form = regexp.MustCompile(`^(0|0?\.\d+)(?:\+([^:]+))?(?::(\d+))?$`)

// Plan are those of a run of that length, in the order of their time.
func Plan(pauses, restarts []string, length time.Duration, instances int) (all []Stop, err error) {
	for i, text := range slices.Concat(pauses, restarts) {
		m, pause, x := form.FindStringSubmatch(text), i < len(pauses), Stop{Instance: -1}
		if m == nil || (m[2] != "") != pause {
			return nil, fmt.Errorf("%q is not of the form 0.5+11s:1 for a pause, or 0.5:1 for a restart: when, as a share of the "+
				"duration, for how long, and which instance, from 0; without one all of them", text)
		}
		at, _ := strconv.ParseFloat(m[1], 64)
		x.At = time.Duration(at * float64(length))
		x.Pause, _ = time.ParseDuration(m[2])
		if m[3] != "" {
			x.Instance, err = strconv.Atoi(m[3])
		}
		switch {
		case length == 0:
			return nil, errors.New("a pause or a restart needs a duration to be a share of: give --duration")
		case err != nil, x.Instance >= instances:
			return nil, fmt.Errorf("%q is of instance %s, and there are %d, counted from 0", text, m[3], instances)
		case pause && (x.Pause <= 0 || x.Pause > length-x.At):
			return nil, fmt.Errorf("the pause %q is of no time that ends within the duration of %v", text, length)
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(a, b Stop) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

// Clock is how far an instance's clock is ahead, and since when, from the start on; 0 is always.
type Clock struct{ Ahead, From time.Duration }

// Clocks are those of the first instances of a run of that length: "2s" is always ahead, and "-2s@0.5" from half of it on.
func Clocks(texts []string, length time.Duration, instances int) (all []Clock, err error) {
	if len(texts) > instances {
		return nil, fmt.Errorf("clocks of %d instances are set, and there are %d", len(texts), instances)
	}
	for _, text := range texts {
		var c Clock
		ahead, at, steps := strings.Cut(text, "@")
		if c.Ahead, err = time.ParseDuration(ahead); steps && err == nil {
			var share float64
			share, err = strconv.ParseFloat(at, 64)
			c.From = time.Duration(share * float64(length))
		}
		if err != nil || c.Ahead.Abs() > 366*24*time.Hour || steps && (c.From <= 0 || c.From >= length) {
			return nil, fmt.Errorf("%q says of no clock how far it is ahead: give a time of at most 366 days such as 2s, or -2s@0.5 "+
				"for one that steps during the run, which needs a duration to be a share of", text)
		}
		all = append(all, c)
	}
	return all, nil
}
