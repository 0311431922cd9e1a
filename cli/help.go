package cli

import (
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
)

// helpCommand explains a command. Unlike cobra's own it makes an unknown one an error.
func helpCommand() *cobra.Command {
	return described("help", &cobra.Command{
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (out []cobra.Completion,
			_ cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, settings.NoFiles
			}
			for _, cmd := range at.Commands() {
				if cmd.IsAvailableCommand() {
					out = append(out, cobra.CompletionWithDesc(cmd.Name(), cmd.Short))
				}
			}
			return out, settings.NoFiles
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && at.HasAvailableSubCommands() {
				return oneOfCommands(at, rest)
			}
			if len(rest) > 0 {
				return usagef("%s has no commands, but got %q (see %s --help)", at.CommandPath(), rest[0], at.CommandPath())
			}
			at.InitDefaultHelpFlag()
			at.InitDefaultVersionFlag()
			return at.Help()
		},
	})
}
