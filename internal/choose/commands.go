package choose

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/options"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// policyText is how the command line takes a policy: by its name, which for one of the
// user's own is its text with dashes, or quoted for a shell.
func policyText(p *quota.Policy) string {
	if known, err := quota.LookupPolicy(p.Name); err == nil && known.Window == p.Window && known.Unit == p.Unit {
		return p.Name
	}
	return strconv.Quote(p.Text())
}

// exploreCommand is a search of a strategy without faults.
func (c *chooser) exploreCommand(sel strategies.Selection) string {
	return fmt.Sprintf("quotabench explore %s --policy %s --instances %d", sel, policyText(&c.cfg.Policy), min(clients, c.cfg.total()))
}

// exploreText is the command of a search that was made.
func exploreText(sel strategies.Selection, s *results.Search) string {
	text := fmt.Sprintf("quotabench explore %s --policy %s --instances %d", sel, s.Policy, s.Instances)
	if len(s.Faults) > 0 {
		text += " --faults " + strings.Join(format.Strings(s.Faults), ",")
	}
	if len(s.Properties) < len(explore.Properties()) {
		text += " --property " + strings.Join(format.Strings(s.Properties), ",")
	}
	return text
}

// planText is what run and sim take alike.
func planText(p *harness.Plan) string {
	text := fmt.Sprintf("--policy %s --limit %d --workload %s --instances %d", policyText(&p.Policy), p.Policy.Limit,
		options.Text(p.Workload.Name, p.Workload.Options, p.Stream.Options), p.Instances)
	if p.Load.PerSecond > 0 {
		text += fmt.Sprintf(" --rate %g", p.Load.PerSecond)
	}
	if p.Life > 0 && p.Life != harness.DefaultLife {
		text += fmt.Sprintf(" --life %v", p.Life)
	}
	if p.Seed != 1 {
		text += fmt.Sprintf(" --seed %d", p.Seed)
	}
	for _, e := range p.Trouble {
		text += " --trouble " + e.String()
	}
	return text + fmt.Sprintf(" --duration %v", p.Duration)
}

// runText is the command of a measurement of one strategy.
func runText(sel strategies.Selection, cfg *measure.Config) string {
	return fmt.Sprintf("quotabench run %s %s --loop %s --workers %d --rounds %d",
		sel, planText(&cfg.Plan), cfg.Load.Loop, cfg.Workers, cfg.Rounds)
}

// simText is the command of a simulation of one strategy.
func simText(sel strategies.Selection, cfg *sim.Config) string {
	text := fmt.Sprintf("quotabench sim %s %s --start %s", sel, planText(&cfg.Plan), cfg.Start.UTC().Format(time.RFC3339))
	if len(cfg.Topology.Regions) > 1 {
		text += " --region " + strings.Join(cfg.Topology.Regions, ",")
	}
	if cfg.Topology.SharedRedis {
		text += " --shared-redis"
	}
	return text
}
