package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
)

// An instance is asked so often once a fault is over, with a pause in between that doubles: it may have to connect
// again. If an instance did not work after all that, others are asked less often after the same fault.
const (
	recoverTries = 6
	againTries   = 2
	recoverPause = 50 * time.Millisecond
)

// passing are the faults after which an instance and its Redis can go on as before.
var passing = []quota.Fault{quota.FaultLostReply, quota.FaultOutage, engine.FaultTimeout, engine.FaultScriptFlush,
	engine.FaultRestart}

// afterFault asks each instance for a subject that has used nothing, once all scripts have ended in a run with a fault
// that has passed. One that does not admit it is ended, so that the next run has another one.
func (w *Engine) afterFault() error {
	running := slices.ContainsFunc(w.callers, func(c *client) bool { return c.at != ended })
	faults := slices.DeleteFunc(w.Look().Faults, func(fault quota.Fault) bool { return !slices.Contains(passing, fault) })
	if running || len(faults) == 0 {
		return nil
	}
	after := fmt.Sprint(faults)
	tries := recoverTries
	if w.fatal[after] {
		tries = againTries
	}
	for _, instance := range w.instances {
		if instance.child == nil { // it has crashed, and starts anew for the next run
			continue
		}
		why := w.recovers(instance, tries)
		if why == "" {
			continue
		}
		w.fatal[after] = true
		w.failing = append(w.failing, fmt.Sprintf("instance %d %s", instance.index, why))
		if err := instance.end(); err != nil {
			return err
		}
	}
	w.seen = false
	return nil
}

// recovers is why an instance does not work once a fault is over, asked so often; empty if it does.
func (w *Engine) recovers(in *instance, tries int) (why string) {
	pause := recoverPause
	for range tries {
		var hangs bool
		why, hangs = w.fresh(in)
		if why == "" || w.base.Err() != nil {
			return ""
		}
		if hangs {
			return why
		}
		time.Sleep(pause)
		pause *= 2
	}
	return why
}

// fresh asks an instance once for a subject that has used nothing, and says what is wrong with the answer, and whether
// there was none.
func (w *Engine) fresh(in *instance) (wrong string, hangs bool) {
	ctx, cancel := context.WithTimeout(w.base, w.Setup.Patience)
	defer cancel()
	request := quota.Request{Subject: w.newSubject(), Policy: &w.Setup.Policy, Units: 1}
	decision, err := in.strategy.Take(ctx, request)
	switch {
	case err == nil && decision.Admitted:
		return "", false
	case ctx.Err() != nil:
		return "does not answer once the fault is over", true
	case err != nil:
		return "still answers with an error once the fault is over", false
	}
	return "still rejects a subject that has used nothing once the fault is over", false
}
