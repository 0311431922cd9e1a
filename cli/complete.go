package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// noFiles tells the shell that a value is not the name of a file.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeWords offers words that are the same at all times.
func completeWords(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, noFiles)
}

func completePolicies(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, p := range quota.Policies() {
		out = append(out, cobra.CompletionWithDesc(p.Name, p.String()))
	}
	return out, noFiles
}

func completeWorkloads(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, m := range workloads.All() {
		out = append(out, cobra.CompletionWithDesc(m.Name, m.Doc))
	}
	return out, noFiles
}

// completeStore offers the words that a driver takes, and how URLs begin.
func completeStore(d *stores.Driver) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		for _, c := range d.Choices {
			out = append(out, cobra.CompletionWithDesc(c.Word, c.Doc))
		}
		return out, noFiles | cobra.ShellCompDirectiveNoSpace
	}
}

// completeNamedStore offers NAME= and then what the driver of the name takes.
func completeNamedStore(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	name, _, named := strings.Cut(typed, "=")
	for _, d := range stores.Drivers() {
		if !named {
			out = append(out, d.Name+"=", d.Name+".")
		}
	}
	if d, err := stores.DriverOf(name); named && err == nil {
		for _, c := range d.Choices {
			out = append(out, cobra.CompletionWithDesc(name+"="+c.Word, c.Doc))
		}
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// completeStrategies completes the last part of a list such as
// "a,b:option=value,option=": a name, an option of the strategy that the part
// belongs to, or a value of it.
func completeStrategies(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	done, part := "", typed
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		done, part = typed[:i+1], typed[i+1:]
	}
	name, option, inOptions := strings.Cut(part, ":")
	if inOptions {
		m, err := strategies.Lookup(name)
		if err != nil {
			return nil, noFiles
		}
		return completeOption(m, done+name+":", option), noFiles | cobra.ShellCompDirectiveNoSpace
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
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// lastWithOptions is the strategy whose options a list is in the midst of.
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

// completed is a flag's value that completes words.
type completed struct {
	value
	complete cobra.CompletionFunc
}

// completeFlags tells cobra what completes flags, where a shell asks. Cobra keeps that
// for as long as the program lives, and with it the whole command, which a program may
// make many times.
func completeFlags(cmd *cobra.Command, _ []string) {
	if cmd.Name() != cobra.ShellCompRequestCmd {
		return
	}
	for _, c := range cmd.Root().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(completed); ok {
				_ = c.RegisterFlagCompletionFunc(f.Name, v.complete) // the flag is there, and was not told of before
			}
		})
	}
}
