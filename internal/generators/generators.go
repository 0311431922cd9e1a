// Package generators is what processes have in common that drive one load together: who
// each of them is, how far its clock is off, how they wait for each other, and how their
// records and histories become one.
package generators

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/version"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

var runID = regexp.MustCompile(`^[a-z0-9]{1,32}$`)

// CheckRunID reports what is wrong with the name of a run.
func CheckRunID(text string) error {
	if !runID.MatchString(text) {
		return fmt.Errorf("%q is no name of a run: give 1 to 32 lower-case letters and digits", text)
	}
	return nil
}

// Member is a generator's connection to the others.
type Member interface {
	// Meet returns once all generators have called it for the same step, with a moment of
	// the coordinator's clock, the same for all. For steps that begin with "start" it lies
	// so far ahead that each generator has the answer by then. An error means that a
	// generator was lost or that the run is to end, and says why. ctx ends the wait.
	Meet(ctx context.Context, step string) (time.Time, error)
	// Bound is where the clock of this process stands, by all that was measured so far.
	Bound() Clock
}

// Join makes a generator of a measurement that has a plan and a part. run names it in stores: 1 to 32 lower-case letters and digits,
// the same for all generators, and not used by any run before.
func Join(c *measure.Config, run string, m Member) {
	c.RunID, c.Meet = run, m.Meet
	c.Shard.Shared = true // also if the plan does not come from --generator
	c.ClockBound = func() (ahead, wrong time.Duration) {
		b := m.Bound()
		return time.Duration(b.OffsetNS), time.Duration(b.ErrorNS)
	}
}

// Fingerprint is equal for generators that have the same version of the program and
// measure the same. What each has for itself, such as its part, is not in it.
func Fingerprint(c *measure.Config) (string, error) {
	own := *c
	own.Shard = workloads.Shard{}
	stream, info, err := own.NewStream(1)
	if err != nil {
		return "", err
	}
	what := struct {
		Version     string
		Seed        uint64
		Rounds      int
		Policy      string
		Costs       []int64
		Life, Reply time.Duration
		Runs        []results.Params
	}{version.Text(), c.Seed, c.Rounds, c.Policy.String(), c.Policy.Costs, c.Life, c.DecisionTimeout, nil}
	for _, s := range own.Strategies {
		what.Runs = append(what.Runs, own.Blank(s, 1, stream, info).Params)
	}
	b, err := json.Marshal(what)
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16], err
}

// HistoryDir is the folder, in the directory that a generator hands back, that has its
// histories. The record, results.json, lies beside it.
const HistoryDir = "histories"

// Clock bounds how far the clock of this process is ahead of the coordinator's: OffsetNS, give
// or take ErrorNS, both in nanoseconds.
type Clock struct {
	OffsetNS int64 `json:"offset_ns"`
	ErrorNS  int64 `json:"error_ns"`
}

// Exchange is what one request and its reply tell: the coordinator read its clock at some
// moment between sent and received, which this process' clock shows.
func Exchange(sent, coordinator, received time.Time) Clock {
	return between(int64(sent.Sub(coordinator)), int64(received.Sub(coordinator)))
}

// Both is the bound that follows from two exchanges within so short a time that the clocks
// did not drift apart: the narrower one if they contradict each other.
func (c Clock) Both(o Clock) Clock {
	low, high := max(c.low(), o.low()), min(c.high(), o.high())
	switch {
	case low <= high:
		return between(low, high)
	case o.ErrorNS < c.ErrorNS:
		return o
	}
	return c
}

// Spanning is the bound over the whole time between two measurements, for clocks that drift
// apart steadily.
func (c Clock) Spanning(o Clock) Clock {
	return between(min(c.low(), o.low()), max(c.high(), o.high()))
}

func (c Clock) low() int64  { return c.OffsetNS - c.ErrorNS }
func (c Clock) high() int64 { return c.OffsetNS + c.ErrorNS }

func between(low, high int64) Clock {
	return Clock{OffsetNS: low + (high-low)/2, ErrorNS: (high - low + 1) / 2}
}
