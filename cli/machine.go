package cli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine"
)

// machineLines say how far this machine's timings can be trusted.
func machineLines(ctx context.Context) []checkup {
	return []checkup{processors(), timer(ctx), steal(machine.ReadCPU())}
}

// enoughCPUs is one for the load, one for Redis, one for PostgreSQL and one for
// everything else.
const enoughCPUs = 4

func processors() checkup {
	n := runtime.NumCPU()
	c := checkup{Name: "processors", State: stateOK, Detail: strconv.Itoa(n), Figures: map[string]float64{"count": float64(n)}}
	if m := machine.CPUModel(); m != "" {
		c.Detail += " x " + m
	}
	if n < enoughCPUs {
		c.State = stateNote
		c.Advice = "load and stores share them: timings show their sum, so compare strategies and not machines"
	}
	return c
}

// How the timer is tried out: readings in a row, and sleeps of a millisecond.
const (
	clockReadings = 20_000
	sleeps        = 20
	sleepFor      = time.Millisecond
	// coarseStep and lateSleep are where open-loop arrivals begin to show the
	// timer and not the strategy.
	coarseStep = time.Microsecond
	lateSleep  = 2 * sleepFor
)

// timer measures the smallest step of the clock, and how late a sleep ends.
func timer(ctx context.Context) checkup {
	step, last := int64(0), clock.Nano()
	begin := last
	for range clockReadings {
		now := clock.Nano()
		if d := now - last; d > 0 && (step == 0 || d < step) {
			step = d
		}
		last = now
	}
	read := float64(last-begin) / clockReadings
	var took []int64
	for range sleeps {
		t := clock.Nano()
		if (clock.Wall{}).Sleep(ctx, sleepFor) != nil {
			break
		}
		took = append(took, clock.Nano()-t)
	}
	slices.Sort(took)
	c := checkup{Name: "timer", State: stateOK, Figures: map[string]float64{"step_ns": float64(step), "read_ns": read}}
	c.Detail = fmt.Sprintf("step of %v, %.0f ns a reading", time.Duration(step), read)
	if len(took) > 0 {
		median := time.Duration(took[len(took)/2])
		c.Figures["sleep_1ms_ns"] = float64(median)
		c.Detail += fmt.Sprintf("; a sleep of %v takes %v", sleepFor, median.Round(10*time.Microsecond))
		if median > lateSleep {
			c.State, c.Advice = stateNote, "sleeps end late: watch the lateness of open loops in the report"
		}
	}
	if time.Duration(step) > coarseStep {
		c.State, c.Advice = stateNote, "latencies below a few steps mean nothing here"
	}
	return c
}

// muchSteal is the share of processor time from which on a neighbour shows in the
// timings.
const muchSteal = 0.01

// steal is how much processor time the hypervisor has given to others since the
// machine started.
func steal(t machine.CPUTime) checkup {
	c := checkup{Name: "steal", State: stateOK}
	if t.Total == 0 {
		c.State, c.Detail = stateNote, "this system does not tell"
		return c
	}
	share := t.Share()
	c.Figures = map[string]float64{"share": share}
	c.Detail = fmt.Sprintf("%.2f %% of the processor time since the machine started", 100*share)
	if share > muchSteal {
		c.State, c.Advice = stateNote, "other machines on this host take processor time: measure when it is quiet, or elsewhere"
	}
	return c
}
