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
}

// Subject says what is tried.
func (s *Settings) Subject() []settings.Setting {
	lowest, highest := 1, measure.MaxInstances
	if s.command == Explore {
		lowest, highest = 0, explore.MaxClients
	}
	return []settings.Setting{
		{Name: "strategy", Title: settings.What, Value: settings.List(&s.Strategies), Complete: CompleteStrategies},
		{Name: "policy", Common: true, Title: settings.What, Value: settings.Text(&s.Policy), Computed: true, Complete: CompletePolicies},
		{Name: "instances", Common: true, Title: settings.What, Value: settings.Whole(&s.Instances, lowest, highest)},
	}
}

// Seeded says where random numbers come from.
func (s *Settings) Seeded() []settings.Setting {
	return []settings.Setting{{Name: "seed", Title: settings.What, Value: settings.Seed(&s.Seed)}}
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
