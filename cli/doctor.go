package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/stores"
)

// state says at a glance how a line of doctor is meant.
type state string

// The states.
const (
	stateOK      state = "ok"
	stateMissing state = "missing" // can be had; the advice says how
	stateNote    state = "note"    // works, but has a say in the figures
)

// checkup is one line of doctor.
type checkup struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Detail string `json:"detail"`
	// Advice is how to use it, how to get it, or what follows from it.
	Advice string `json:"advice,omitempty"`
	// Figures are the numbers in Detail.
	Figures map[string]float64 `json:"figures,omitempty"`
}

func doctorCommand() *cobra.Command {
	cleaning := newCleaning()
	cmd := described("doctor", &cobra.Command{
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cleaning.checkAsked(); err != nil {
				return err
			}
			if cleaning.clean {
				return cleaning.run(cmd)
			}
			lines := append(programLines(cmd.Context()), storeVariables())
			// How far this machine's timings can be trusted.
			lines = append(lines, processors(), timer(cmd.Context()), steal(machine.ReadCPU()))
			return show(cmd, cleaning.asJSON, lines, checkupLines)
		},
	})
	cleaning.register(cmd)
	return cmd
}

// programLines say which programs of others are here: those of stores, and the library that stops the clocks of
// services.
func programLines(ctx context.Context) []checkup {
	var lines []checkup
	faketime := programs.Named("faketime")
	path, err := faketime.Path()
	for _, finding := range append(stores.Survey(ctx), server.Surveyed(faketime, path, err)) {
		c := checkup{Name: finding.Name, State: stateMissing, Detail: finding.Detail, Advice: finding.Advice}
		if finding.Found {
			c.State = stateOK
		}
		lines = append(lines, c)
	}
	return lines
}

// checkupLines are one line each, in columns.
func checkupLines(page layout.Page, all []checkup) (out []string) {
	names := 0
	states := 0
	for _, checkup := range all {
		names = max(names, uniseg.StringWidth(checkup.Name))
		states = max(states, len(checkup.State))
	}
	for _, checkup := range all {
		text := checkup.Detail
		if checkup.Advice != "" {
			text += ": " + checkup.Advice
		}
		head := layout.Pad(checkup.Name, names) + "  "
		lines := page.Paragraph(head+layout.Pad(string(checkup.State), states)+"  ", text)
		rest := lines[0][len(head)+len(checkup.State):]
		lines[0] = head + page.Paint(tones[checkup.State], string(checkup.State)) + rest
		out = append(out, lines...)
	}
	return out
}

// tones of the states.
var tones = map[state]layout.Tone{stateOK: layout.Good, stateMissing: layout.Caution, stateNote: layout.Caution}

// storeVariables says which variables name stores.
func storeVariables() checkup {
	c := checkup{Name: "environment", State: stateOK}
	var all, set []string
	for _, driver := range stores.Drivers() {
		name := group.StoreVariable(driver.Name)
		all = append(all, name)
		if text := os.Getenv(name); text != "" {
			set = append(set, name+"="+redact.URLs(text))
		}
	}
	c.Detail = "names no store"
	if len(set) > 0 {
		c.Detail = strings.Join(set, ", ")
	}
	c.Advice = strings.Join(all, ", ") + " stand for the flags of these stores; a flag wins, then a configuration file"
	return c
}

// enoughCPUs is one for the load, one for Redis, one for PostgreSQL and one for
// everything else.
const enoughCPUs = 4

func processors() checkup {
	n := runtime.NumCPU()
	c := checkup{Name: "processors", State: stateOK, Detail: strconv.Itoa(n),
		Figures: map[string]float64{"count": float64(n)}}
	if text := machine.CPUModel(); text != "" {
		c.Detail += " x " + text
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
	// coarseStep and lateSleep are the values from which open-loop arrivals
	// show the timer and not the strategy.
	coarseStep = time.Microsecond
	lateSleep  = 2 * sleepFor
)

// timer measures the smallest step of the clock, and how late a sleep ends.
func timer(ctx context.Context) checkup {
	step := int64(0)
	last := clock.Nano()
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
			c.State = stateNote
			c.Advice = "sleeps end late: watch the lateness of open loops in the report"
		}
	}
	if time.Duration(step) > coarseStep {
		c.State = stateNote
		c.Advice = "latencies below a few steps mean nothing here"
	}
	return c
}

// muchSteal is the share of processor time from which on a neighbour shows in the
// timings.
const muchSteal = 0.01

// steal is how much processor time the hypervisor has given to others since the
// machine started.
func steal(cpuTime machine.CPUTime) checkup {
	c := checkup{Name: "steal", State: stateOK}
	if cpuTime.Total == 0 {
		c.State = stateNote
		c.Detail = "this system does not tell"
		return c
	}
	share := cpuTime.Share()
	c.Figures = map[string]float64{"share": share}
	c.Detail = fmt.Sprintf("%.2f %% of the processor time since the machine started", 100*share)
	if share > muchSteal {
		c.State = stateNote
		c.Advice = "other machines on this host take processor time: measure when it is quiet, or elsewhere"
	}
	return c
}
