package group

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
		{Name: "strategy", Title: settings.What, Value: settings.List(&s.Strategies), Complete: CompleteStrategies,
			ArgumentOnly: s.command != Choose, Doc: by(s, "strategies if no arguments name them, a,b:option=value, core, all or a "+
				"pattern such as pg-*", texts{Choose: ""})},
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
	kinds, err := s.readClients()
	if err != nil {
		return nil, err
	}
	if slices.Equal(kinds, []strategies.Client{strategies.PlainClient}) {
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

// CompletePolicies offers the registered policies.
func CompletePolicies(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, p := range quota.Policies() {
		out = append(out, cobra.CompletionWithDesc(p.Name, PolicyText(&p)))
	}
	return out, settings.NoFiles
}

// CompleteStrategies completes the last part of a list such as
// "a,b:option=value,option=": a name, an option of the strategy that the part
// belongs to, or a value of it.
func CompleteStrategies(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	done, part := "", typed
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		done, part = typed[:i+1], typed[i+1:]
	}
	name, option, inOptions := strings.Cut(part, ":")
	if inOptions {
		m, err := strategies.Lookup(name)
		if err != nil {
			return nil, settings.NoFiles
		}
		return completeOptions(m.Options, done+name+":", option), settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
	out := []cobra.Completion{
		cobra.CompletionWithDesc(done+"core", "those of a run that names none"),
		cobra.CompletionWithDesc(done+"all", "every strategy that can run"),
	}
	for _, m := range strategies.All() {
		out = append(out, cobra.CompletionWithDesc(done+m.Name, m.Doc))
	}
	if m := lastWithOptions(done); m != nil {
		out = append(out, completeOptions(m.Options, done, part)...)
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}

// lastWithOptions is the strategy whose options a list ends with.
func lastWithOptions(list string) *strategies.Meta {
	parts := strings.Split(strings.TrimSuffix(list, ","), ",")
	for _, part := range slices.Backward(parts) {
		if name, _, ok := strings.Cut(part, ":"); ok && !strings.Contains(name, "=") {
			m, err := strategies.Lookup(name)
			if err != nil {
				return nil
			}
			return m
		}
		if !strings.Contains(part, "=") {
			return nil
		}
	}
	return nil
}
