package group

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// CompletePolicies offers the registered policies.
func CompletePolicies(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, p := range quota.Policies() {
		out = append(out, cobra.CompletionWithDesc(p.Name, PolicyText(&p)))
	}
	return out, settings.NoFiles
}

func completeWorkloads(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, m := range workloads.All() {
		out = append(out, cobra.CompletionWithDesc(m.Name, m.Doc))
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
		return completeOption(m, done+name+":", option), settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
	out := []cobra.Completion{
		cobra.CompletionWithDesc(done+"core", "those of a run that names none"),
		cobra.CompletionWithDesc(done+"all", "every strategy that can run"),
	}
	for _, m := range strategies.All() {
		out = append(out, cobra.CompletionWithDesc(done+m.Name, m.Doc))
	}
	if m := lastWithOptions(done); m != nil {
		out = append(out, completeOption(m, done, part)...)
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

// completeOption offers the options of a strategy, or the values of the one that
// was begun.
func completeOption(m *strategies.Meta, done, part string) []cobra.Completion {
	name, _, inValue := strings.Cut(part, "=")
	var out []cobra.Completion
	for _, o := range m.Options {
		switch {
		case !inValue:
			out = append(out, cobra.CompletionWithDesc(done+o.Name+"=", o.Doc))
		case o.Name == name:
			for _, v := range optionValues(o) {
				out = append(out, done+o.Name+"="+v)
			}
		}
	}
	return out
}

func optionValues(o quota.Option) []string {
	switch {
	case len(o.Values) > 0:
		return o.Values
	case o.Type == "bool":
		return []string{strconv.FormatBool(true), strconv.FormatBool(false)}
	default:
		return []string{o.Default}
	}
}
