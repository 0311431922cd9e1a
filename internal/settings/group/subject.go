package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// subject is what is tried.
type subject struct {
	Strategies []string
	Policy     string
	Chose      string       // which policy, if nobody did
	usual      quota.Policy // that would be it
	Instances  int
	Seed       uint64
}

// Subject says what is tried.
func (s *Settings) Subject() []settings.Setting {
	const list = "`a,b:option=value`, core, all or a pattern such as pg-*; may be repeated"
	const policy = "`policy` to enforce: a name (see quotabench list policies), a text such as \"5 attempts per rolling 15m\", or @file.yaml"
	lowest, highest := 1, measure.MaxInstances
	if s.command == Explore {
		lowest, highest = 0, explore.MaxClients
	}
	return []settings.Setting{
		{Name: "strategy", Title: settings.What, Value: settings.List(&s.Strategies), Complete: CompleteStrategies,
			Doc: by(s, "strategies, "+list, texts{Explore: "strategies, " + list + ", or given as arguments",
				Choose: "strategies to choose from, " + list})},
		{Name: "policy", Common: true, Title: settings.What, Value: settings.Text(&s.Policy), Computed: true, Complete: CompletePolicies,
			Doc: by(s, policy+"; without it, strategies that do not serve the default have one of a kind that they serve", texts{
				Choose:  policy,
				Explore: "policy to enforce (default: one of the strategy's own record)",
			})},
		{Name: "instances", Common: true, Title: settings.What, Value: settings.Whole(&s.Instances, lowest, highest),
			Doc: by(s, "application instances that share the stores; with one, a counter in each process looks right", texts{
				Sim:     "application instances in each region, that share its stores; a preset has its own",
				Explore: "application instances that share the stores (default: one per client)",
				Choose:  "application instances, in each region",
			})},
	}
}

// Seeded says where random numbers come from.
func (s *Settings) Seeded() []settings.Setting {
	return []settings.Setting{{Name: "seed", Title: settings.What, Value: settings.Seed(&s.Seed),
		Doc: by(s, "seed of everything random", texts{Explore: "seed of the strategies' own random numbers"})}}
}

// Selections are the strategies that are asked for.
func (s *Settings) Selections() ([]strategies.Selection, error) {
	if len(s.Strategies) == 0 {
		return nil, s.Wrong("strategy", errors.New("give at least one, or all"))
	}
	all, err := strategies.Parse(strings.Join(s.Strategies, ","))
	if err != nil {
		return nil, s.Wrong("strategy", err)
	}
	if !s.measured() {
		return all, nil
	}
	if all, err = s.withClients(all); err != nil {
		return nil, s.Wrong("client", err)
	}
	return all, nil
}

// withClients are the strategies with each kind of client that is asked for.
func (s *Settings) withClients(all []strategies.Selection) ([]strategies.Selection, error) {
	var kinds []strategies.Client
	for _, name := range splitComma(strings.Join(s.Clients, ",")) {
		kind, err := strategies.ParseClient(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("%s is given twice", kind)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 1 && kinds[0] == strategies.PlainClient {
		return all, nil
	}
	return strategies.WithClients(all, kinds), nil
}

// splitComma are the parts of a list, without the blanks around them.
func splitComma(text string) []string {
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
