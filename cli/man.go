package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/quotabench/quotabench/internal/format"
)

func manCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "man",
		Short: "Write manual pages, one for each command",
		Long: "Writes quotabench.1 and a page for each command to a directory. \"quotabench completion\" writes\n" +
			"the completion files of shells.",
		Example: "  quotabench man --out man1 && man ./man1/quotabench-run.1\n" +
			"  quotabench completion bash > quotabench.bash",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("man needs a directory: give --out DIRECTORY")
			}
			s := &settings{}
			if err := s.canMake("out", out); err != nil {
				return err
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return s.badDir("out", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same bytes from the same program
			version, _ := buildVersion()
			header := &doc.GenManHeader{Title: "QUOTABENCH", Section: "1", Source: "quotabench " + version, Manual: "quotabench manual"}
			if err := doc.GenManTree(root, header, out); err != nil {
				return fail(ExitFailed, err)
			}
			pages, err := os.ReadDir(out)
			if err != nil {
				return fail(ExitFailed, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s\n", format.Plural(int64(len(pages)), "manual page", "manual pages"), out)
			return nil
		},
	}
	cmd.Flags().VarP(&text{p: &out, what: "a directory"}, "out", "o", "write to this `directory`")
	return cmd
}
