package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/session"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/version"
)

func manCommand() *cobra.Command {
	var out string
	var s *settings.Set
	cmd := described("man", &cobra.Command{
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("man needs a directory: give --out DIRECTORY")
			}
			if err := session.CanMake(s, "out", out); err != nil {
				return err
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return session.BadDir(s, "out", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same bytes from the same program
			number, _ := version.Build()
			header := &doc.GenManHeader{Title: "QUOTABENCH", Section: "1", Source: "quotabench " + number, Manual: "quotabench manual"}
			if err := doc.GenManTree(root, header, out); err != nil {
				return fail(ExitFailed, err)
			}
			pages, err := os.ReadDir(out)
			if err != nil {
				return fail(ExitFailed, err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s\n", format.Number(len(pages), "manual page"), out)
			return nil
		},
	})
	s = settings.New(cmd, []settings.Setting{{Name: "out", Short: "o", Value: settings.Named(&out, "a directory")}})
	return cmd
}
