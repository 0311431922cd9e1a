package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// goingOn is a further search, in which time passes.
type goingOn struct {
	policy  string // as [quota.ParsePolicy] reads it
	limit   int64
	scripts string // one per client
	times   int    // of the clock's ticks, which come once more; 0 for the default
}

// goingsOn are the further searches per kind of window. A unit flows into a bucket once
// per second, or in a number of seconds that is not whole; windows are ten seconds long,
// or not whole seconds. One caller asks again after the limit was reached, asks for more
// than one unit where that is served, or comes beside another.
var goingsOn = map[quota.Kind][]goingOn{
	quota.Bucket: {
		{"1 request refilling 1 per 1s", 1, "take,take,take", 0},
		{"1 request refilling 2 per 3s", 1, "take,take,take", 0},
		{"2 requests refilling 1 per 1s", 2, "take,take,take,take", 2},
		{"2 requests refilling 1 per 1s", 2, "take,take=2,take", 0},
		{"1 request refilling 1 per 1s", 1, "take;take", 0},
	},
	quota.FirstRequest: windows("first-request"),
	quota.Fixed:        windows("fixed"),
	quota.Rolling:      windows("rolling"),
}

func windows(kind string) []goingOn {
	return []goingOn{
		{"1 request per " + kind + " 10s", 1, "take,take,take", 0},
		{"2 requests per " + kind + " 10s", 2, "take,take,take", 0},
		{"1 request per " + kind + " 500ms", 1, "take,take,take", 0},
		{"1 request per " + kind + " 1500ms", 1, "take,take,take", 0},
		{"2 requests per " + kind + " 10s", 2, "take,take=2,take", 0},
		{"1 request per " + kind + " 10s", 1, "take;take", 0},
	}
}

// Searches are those that the command makes of a strategy where it is told nothing about
// policies, clients and faults: cfg itself, and for the adapter of a library ([strategies.Library])
// further ones in which time passes, under several policies of each kind that it serves.
// What a library does within a window says little about the next one, and rates that are
// no whole number of units per second are where such code rounds. Others are described
// by whoever wrote them, and searched so where that is asked for. A library that counts
// per process is searched on one instance: that several admit several limits is no news.
//
// Each search claims what it claims for its own policy. Those that the strategy does not
// serve are left out.
func Searches(sel strategies.Selection, cfg Config) []Config {
	if sel.Form != strategies.Library || OnPostgres(sel) {
		return []Config{cfg}
	}
	if sel.PerProcess {
		cfg.Instances = 1
	}
	out := []Config{cfg}
	for _, kind := range sel.Kinds {
		for _, g := range goingsOn[kind] {
			next, ok := g.config(sel, cfg)
			if ok {
				out = append(out, next)
			}
		}
	}
	return out
}

// config is the further search; ok is false where the strategy does not serve it.
func (g *goingOn) config(sel strategies.Selection, cfg Config) (_ Config, ok bool) {
	var err error
	if cfg.Policy, err = quota.ParsePolicy(g.policy); err != nil {
		panic(err) // a text of this file
	}
	if cfg.Scripts, err = ParseScripts(g.scripts); err != nil {
		panic(err)
	}
	cfg.Policy.Unit = "requests" // of a limit of one it is "request"
	cfg.Clients, cfg.Limit, cfg.Faults, cfg.Times = len(cfg.Scripts), g.limit, []quota.Fault{quota.FaultClock}, g.times
	for _, s := range cfg.Scripts {
		if slices.ContainsFunc(s, func(a Action) bool { return a.Units > 1 && !sel.ServesUnits(&cfg.Policy, a.Units) }) {
			return cfg, false
		}
	}
	_, err = cfg.complete(sel)
	return cfg, err == nil
}

// windowText is when units of a policy are free again, in words.
func windowText(p *quota.Policy) string {
	return strings.TrimSpace(strings.TrimPrefix(p.String(), fmt.Sprintf("%d %s", p.Limit, p.Unit)))
}
