package settings

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/exit"
	"github.com/quotabench/quotabench/quota"
)

// wasAnnotation of a flag is the name that it had.
const wasAnnotation = "quotabench_was"

// BadFlag words what pflag finds wrong with a command line.
func BadFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && empty.GetSpecifiedShortnames() == "" {
		wanted := "give one"
		if v, ok := empty.GetFlag().Value.(interface{ Wants() string }); ok {
			wanted = v.Wants()
		}
		return exit.Usagef("--%s has no value: %s (see %s --help)", empty.GetSpecifiedName(), wanted, cmd.CommandPath())
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		name, now := unknown.GetSpecifiedName(), ""
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			names = append(names, f.Name)
			if was := f.Annotations[wasAnnotation]; was != nil && was[0] == name {
				now = f.Name
			}
		})
		if now != "" {
			return exit.Usagef("--%s is called --%s now (see %s --help)", name, now, cmd.CommandPath())
		}
		return exit.Usagef("unknown flag --%s%s (see %s --help)", name, nearest(name, names, "--"), cmd.CommandPath())
	}
	return exit.Usagef("%w (see %s --help)", err, cmd.CommandPath())
}

// hint is a question in front of what to give, or nothing.
func hint(name string, names []string) string {
	if best := quota.Nearest(name, names); best != "" {
		return "did you mean " + best + "? "
	}
	return ""
}

// nearest suggests the name that was probably meant, or nothing.
func nearest(name string, names []string, prefix string) string {
	if best := quota.Nearest(name, names); best != "" {
		return ": did you mean " + prefix + best + "?"
	}
	return ""
}
