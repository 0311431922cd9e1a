package settings

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoFiles tells a shell that a value is not the name of a file.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// Words offers words that are the same at all times.
func Words(words ...string) cobra.CompletionFunc { return cobra.FixedCompletions(words, NoFiles) }

// completed is a flag's value, and what completes it; nil for names of files.
type completed struct {
	*Value
	complete cobra.CompletionFunc
}

// CompleteFlags tells cobra what completes flags, if a shell asks. Cobra keeps that for as
// long as the program lives, and with it the whole command, which a program may make many
// times.
func CompleteFlags(cmd *cobra.Command, _ []string) {
	if cmd.Name() != cobra.ShellCompRequestCmd {
		return
	}
	for _, c := range cmd.Root().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if v, ok := f.Value.(completed); ok && v.complete != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, v.complete) // the flag is there, and was not told of before
			}
		})
	}
}
