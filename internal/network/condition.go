// Package network makes the network between instances and a store worse than it is, on purpose: on the connections of a real
// client, or for the model of a simulation.
package network

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Condition is what is wrong with the network between instances and one store.
type Condition struct {
	// Store is its name, such as "redis".
	Store string
	// Instance has the condition alone, counted from 0; -1 is all of them.
	Instance int
	// From and To are shares of the duration, 0 to 1. A condition until 1 lasts until the run has ended.
	From, To float64
	// Latency is added to each round trip, Jitter more or less, evenly distributed.
	Latency, Jitter time.Duration
	// Bandwidth is that of one instance, each way, in bytes per second; 0 is no bound.
	Bandwidth float64
	// Loss and ReplyLoss are shares of the requests, 0 to 1, that end in a connection that is reset: before the request
	// has reached the store, or when the first bytes of its reply come.
	Loss, ReplyLoss float64
	// Cut holds back all that is sent either way until it ends, at the end of the duration at the latest. Nobody is told.
	Cut bool
}

const form = "STORE:CONDITIONS, as in redis:latency=2ms,jitter=1ms, for one instance redis/2:latency=2ms, and for part of the " +
	"duration redis/2:0.3-0.6:cut; conditions are latency, jitter, bandwidth (as in 100kB, per second), loss and reply-loss " +
	"(shares of the requests), and cut"

// Parse reads "redis/2:0.3-0.6:latency=2ms,jitter=1ms".
func Parse(text string) (Condition, error) {
	bad := fmt.Errorf("%q is not of the form %s", text, form)
	c := Condition{Instance: -1, To: 1}
	where, rest, ok := strings.Cut(text, ":")
	span, what, timed := strings.Cut(rest, ":")
	if !timed {
		what = rest
	}
	store, instance, one := strings.Cut(where, "/")
	if c.Store = store; !ok || store == "" {
		return c, bad
	}
	var err error
	if one {
		c.Instance, err = strconv.Atoi(instance)
	}
	if timed && err == nil {
		from, to, _ := strings.Cut(span, "-")
		var err2 error
		c.From, err = strconv.ParseFloat(from, 64)
		c.To, err2 = strconv.ParseFloat(to, 64)
		err = errors.Join(err, err2)
	}
	if err != nil || one && c.Instance < 0 || !(c.From >= 0 && c.From < c.To && c.To <= 1) {
		return c, bad
	}
	for i, item := range strings.Split(what, ",") { // whose text may be a piece of a password
		if !c.set(item) {
			return c, fmt.Errorf("%q: item %d is no condition; the form is %s", text, i+1, form)
		}
	}
	if c.Jitter > c.Latency {
		return c, fmt.Errorf("%q: the jitter is larger than the latency, and no reply comes before it is sent", text)
	}
	return c, nil
}

// set reads one condition, such as "latency=2ms", and reports whether it is one.
func (c *Condition) set(item string) (ok bool) {
	var err error
	name, value, _ := strings.Cut(item, "=")
	share := func(of *float64) bool {
		*of, err = strconv.ParseFloat(value, 64)
		return *of >= 0 && *of <= 1
	}
	span := func(of *time.Duration) bool {
		*of, err = time.ParseDuration(value)
		return *of >= 0 && *of <= MaxLatency
	}
	switch name {
	case "latency":
		ok = span(&c.Latency)
	case "jitter":
		ok = span(&c.Jitter)
	case "loss":
		ok = share(&c.Loss)
	case "reply-loss":
		ok = share(&c.ReplyLoss)
	case "bandwidth":
		value = strings.NewReplacer("kB", "e3", "MB", "e6", "GB", "e9").Replace(value)
		c.Bandwidth, err = strconv.ParseFloat(strings.TrimSuffix(value, "B"), 64)
		ok = c.Bandwidth >= 1 && c.Bandwidth <= 1e12
	case "cut":
		c.Cut, ok = true, item == name
	}
	return ok && err == nil
}

// MaxLatency is the most that a round trip can be made longer by.
const MaxLatency = time.Hour

// Plan is what texts say that have been read before.
func Plan(texts []string) (out []Condition) {
	for _, text := range texts {
		c, _ := Parse(text)
		out = append(out, c)
	}
	return out
}

// Check reports the first text that is none, or that a run with so many instances and that duration cannot have.
func Check(texts []string, instances int, duration time.Duration) error {
	for _, text := range texts {
		c, err := Parse(text)
		switch {
		case err != nil:
			return err
		case c.Instance >= instances:
			return fmt.Errorf("%q: instances are 0 to %d", text, instances-1)
		case (c.From > 0 || c.To < 1) && duration == 0:
			return fmt.Errorf("%q is a share of the duration: give --duration", text)
		}
	}
	return nil
}

// Faults are what happens to strategies; none if requests only take longer. What is held back by a cut may take effect
// after its caller has given up.
func (c Condition) Faults() (out []quota.Fault) {
	if c.Loss > 0 || c.Cut {
		out = append(out, quota.FaultOutage)
	}
	if c.ReplyLoss > 0 || c.Cut {
		out = append(out, quota.FaultLostReply)
	}
	return out
}

// Loses reports whether requests may fail by one of the conditions of a store.
func Loses(all []Condition, concerns func(store string) bool) bool {
	return slices.ContainsFunc(all, func(c Condition) bool { return len(c.Faults()) > 0 && concerns(c.Store) })
}

// Within is when the condition is to begin and to end in a run of that length, since the run's beginning. Until 1 it has no end.
func (c Condition) Within(length time.Duration) (from, to time.Duration) {
	if c.To == 1 {
		return time.Duration(c.From * float64(length)), 1<<63 - 1
	}
	return time.Duration(c.From * float64(length)), time.Duration(c.To * float64(length))
}

// In reports whether the condition holds at that time since the beginning of a run of that length.
func (c Condition) In(since, length time.Duration) bool {
	from, to := c.Within(length)
	return since >= from && since < to
}

// Delay is by how much a round trip is longer. Draw is a random number from 0 to below 1.
func (c Condition) Delay(draw float64) time.Duration {
	return c.Latency + time.Duration((2*draw-1)*float64(c.Jitter))
}
