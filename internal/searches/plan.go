package searches

import (
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// asking is one search or enumeration of the command.
type asking struct {
	sel strategies.Selection
	cfg explore.Config
}

// repeatsStopped reports whether err says that schedules of a service do not repeat, which those of a stopped clock may.
func (a *asking) repeatsStopped(err error) bool {
	return a.cfg.Service != "" && a.cfg.ServiceClock == "" && errors.Is(err, explore.ErrNotDeterministic)
}

// plan lists the searches of the chosen strategies: those of [explore.Config.Placed] if anything
// except a policy is said about what is to happen in them, and those of [explore.Searches] otherwise.
//
// Of a part they are those of some strategies, since the first search of a strategy decides whether there are others, and those
// that count a part of the schedules of each.
func (s *Options) plan(chosen []strategies.Selection, cfg explore.Config, part workloads.Shard) (out []asking) {
	said := s.Full
	for _, name := range []string{"limit", "instances", "clients", "script", "used", "skew", "faults", "times", "jobs"} {
		said = said || s.Given(name)
	}
	for i, sel := range chosen {
		searches := []explore.Config{cfg}
		if s.Full && cfg.Service == "" && !explore.OnPostgres(sel) {
			searches[0].Part = part
		} else if !part.Has(i) {
			continue
		}
		switch {
		case !said:
			searches = explore.Searches(sel, cfg)
		case !s.Full:
			searches = cfg.Placed(sel)
		}
		for _, c := range searches {
			out = append(out, asking{sel, c})
		}
	}
	return out
}

// part is that of --part, and the fingerprint of what all parts share.
func (s *Options) part(chosen []strategies.Selection) (part workloads.Shard, plan string, err error) {
	if part, plan, err = s.Part(); err != nil {
		return part, plan, err
	}
	switch {
	case part.Of > 0 && s.Asked.First:
		err = errors.New("no part knows what another has found: leave --first out")
	case part.Of > len(chosen) && !s.Full:
		err = fmt.Errorf("there are no more than %s to search, each of them whole: give at most as many parts, or --full, which parts "+
			"the schedules of each", format.Plural(int64(len(chosen)), "strategy", "strategies"))
	default:
		return part, plan, nil
	}
	return part, plan, s.Wrong("part", err)
}
