package group

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// subject is what is tried.
type subject struct {
	Strategies []string
	Policy     string
	Chose      string       // which policy, if nobody did so in full
	usual      quota.Policy // that would be it
	Survive    []string     // faults, for a run that considers all strategies
}

// Subject says what is tried.
func (s *Settings) Subject() []settings.Setting {
	lowest := 1
	highest := bounds.MaxInstances
	if s.command == Explore {
		lowest = 0
		highest = bounds.MaxClients
	}
	return []settings.Setting{
		{Name: "strategy", Title: settings.What, Value: settings.List(&s.Strategies), Complete: CompleteStrategies,
			ArgumentOnly: true, Doc: "strategies if no arguments name them, a,b:option=value, core, all or a pattern such " +
				"as pg-*"},
		{Name: "policy", Common: true, Title: settings.What, Value: settings.Text(&s.Policy), Computed: true,
			Complete: CompletePolicies},
		{Name: "instances", Common: true, Title: settings.What, Value: settings.Whole(&s.Instances, lowest, highest),
			Parameter: true},
	}
}

// Survived are the faults that strategies have to survive if a run considers all of them.
func (s *Settings) Survived() []settings.Setting {
	return []settings.Setting{{Name: "survive", Common: true, Title: settings.Gates, Computed: true,
		Value:    settings.List(&s.Survive),
		Complete: settings.Words(format.Strings(quota.Faults())...)}}
}

// Considers reports whether the command names no strategy, and is to find out itself which of all to measure.
func (s *Settings) Considers() bool { return s.command == Run && len(s.Strategies) == 0 }

// Faults reads --survive.
func (s *Settings) Faults() ([]quota.Fault, error) {
	var faults []quota.Fault
	for _, name := range Items(s.Survive) {
		fault := quota.Fault(name)
		if !slices.Contains(quota.Faults(), fault) {
			return nil, s.Wrong("survive", quota.Unknown("fault", name, format.Strings(quota.Faults()), ""))
		}
		if !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
	}
	return faults, nil
}

// Seeded says where random numbers come from.
func (s *Settings) Seeded() []settings.Setting {
	return []settings.Setting{{Name: "seed", Title: settings.What, Value: settings.Seed(&s.Seed)}}
}

// Selections are the strategies that are asked for.
func (s *Settings) Selections() ([]strategies.Selection, error) {
	named := strings.Join(s.Strategies, ",")
	if s.Considers() {
		named = "all"
	}
	if named == "" {
		return nil, s.Wrong("strategy", errors.New("give at least one, or all"))
	}
	all, err := strategies.Parse(named)
	if err != nil {
		return nil, s.Wrong("strategy", err)
	}
	if s.Considers() {
		all = candidates(all)
	}
	return all, nil
}

// candidates are the strategies that are no baselines, or all if there are only such.
func candidates(all []strategies.Selection) []strategies.Selection {
	isBaseline := func(sel strategies.Selection) bool { return sel.Form == strategies.Baseline }
	others := slices.DeleteFunc(slices.Clone(all), isBaseline)
	if len(others) == 0 {
		return all
	}
	return others
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
	for _, policy := range quota.Policies() {
		out = append(out, cobra.CompletionWithDesc(policy.Name, PolicyText(&policy)))
	}
	return out, settings.NoFiles
}

// CompleteStrategies completes the last part of a list such as
// "a,b:option=value,option=": a name, an option of the strategy that the part
// belongs to, or a value of it.
func CompleteStrategies(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	done := ""
	part := typed
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		done = typed[:i+1]
		part = typed[i+1:]
	}
	name, option, inOptions := strings.Cut(part, ":")
	if inOptions {
		meta, err := strategies.Lookup(name)
		if err != nil {
			return nil, settings.NoFiles
		}
		return completeOptions(meta.Options, done+name+":", option), settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
	out := []cobra.Completion{
		cobra.CompletionWithDesc(done+"core", "a few well-known ones"),
		cobra.CompletionWithDesc(done+"all", "every strategy that can run"),
	}
	for _, meta := range strategies.All() {
		out = append(out, cobra.CompletionWithDesc(done+meta.Name, meta.Doc))
	}
	if meta := lastWithOptions(done); meta != nil {
		out = append(out, completeOptions(meta.Options, done, part)...)
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}

// lastWithOptions is the strategy whose options a list ends with.
func lastWithOptions(list string) *strategies.Meta {
	parts := strings.Split(strings.TrimSuffix(list, ","), ",")
	for _, part := range slices.Backward(parts) {
		if name, _, ok := strings.Cut(part, ":"); ok && !strings.Contains(name, "=") {
			meta, err := strategies.Lookup(name)
			if err != nil {
				return nil
			}
			return meta
		}
		if !strings.Contains(part, "=") {
			return nil
		}
	}
	return nil
}
