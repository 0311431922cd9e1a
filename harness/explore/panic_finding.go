package explore

import (
	"context"
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/harness/explore/internal/engine"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// panicFinding is the schedule that a child has died of. Its steps are those of another
// child, which stops before the last of them, and then what ends the process.
func panicFinding(ctx context.Context, sel strategies.Selection, cfg *Config, died *DiedError) (Finding, error) {
	f := breakage{Finding: Finding{Property: Panicked}}.unshown(sel, cfg)
	doing, schedule, _ := strings.Cut(died.Trail(), " ")
	path, err := parsePath(schedule)
	if err != nil {
		return f, fmt.Errorf("the schedule that ended a process: %w", err)
	}
	f.Detail = "a goroutine of the strategy's ends the program: " + died.Reason()
	switch doing {
	case doingSteps:
	case doingClose:
		f.Detail += ", as the instances are closed"
	case doingProbe:
		f.Detail += ", after a rejection and several windows at rest"
		return f, nil
	default:
		return f, nil
	}
	f.Token = tokenOf(sel, cfg, path, Panicked)
	last := lastStep(doing, path, cfg.Clients)
	if doing == doingSteps && len(path) > 0 {
		path = path[:len(path)-1]
	}
	if len(path) > 0 {
		a, err := inChild(ctx, sel, cfg, task{Token: tokenOf(sel, cfg, path, Panicked)})
		if err != nil || a.Replayed == nil { // it dies of that, too
			return f, nil
		}
		f.Steps, f.Columns, f.Faults = a.Replayed.Finding.Steps, a.Replayed.Finding.Columns, a.Replayed.Finding.Faults
		before := f.Steps[len(f.Steps)-1]
		last.At, last.InUse = before.At, before.InUse
	}
	if last.Column >= len(f.Columns) {
		for i := range cfg.Clients {
			f.Columns = append(f.Columns, results.Column{Name: engine.ClientName(i), Role: results.RoleClient})
		}
	}
	last.Number, last.Limit = len(f.Steps)+1, cfg.Policy.Limit
	last.Command += ", and the program ends: " + died.What
	f.Steps = append(f.Steps, last)
	return f, nil
}

// lastStep is what a process was doing when it died.
func lastStep(doing string, path []engine.Choice, clients int) results.Step {
	s := results.Step{Actor: "instance 0", Role: results.RoleInstance, Column: -1, Event: results.EventResume}
	if doing == doingClose {
		s.Command = "is closed"
		return s
	}
	if len(path) == 0 {
		s.Command = "is opened"
		return s
	}
	switch c := path[len(path)-1]; {
	case c.Kind == engine.TickClock:
		return results.Step{Actor: "clock", Role: results.RoleClock, Column: -1, Event: results.EventTick, Command: "time passes"}
	case c.Kind == engine.EvictKey:
		return results.Step{Actor: "store", Role: results.RoleStore, Column: -1, Event: results.EventEviction, Command: "evicts " + c.Key}
	case c.Kind == engine.CrashHost:
		s.Event, s.Command = results.EventCrash, "ends and starts anew"
	case c.ID < clients:
		s.Actor = engine.ClientName(c.ID)
		s.Role = results.RoleClient
		s.Column = c.ID
		s.Command = "goes on"
	default:
		s.Command = "a goroutine of its own goes on"
	}
	return s
}
