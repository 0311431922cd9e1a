package cli

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/settings"
	build "github.com/quotabench/quotabench/internal/version"
	"github.com/quotabench/quotabench/results"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := described("version", &cobra.Command{
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, commit := build.Build()
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), map[string]any{
					"version": version, "commit": commit, "date": build.Date(),
					"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
					"schema": results.SchemaVersion,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "quotabench %s\ncommitted  %s\nbuilt by   %s for %s/%s\nwrites     schema %d of results.json\n",
				build.Text(), cmp.Or(build.Date(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, results.SchemaVersion)
			return err
		},
	})
	settings.New(cmd, []settings.Setting{jsonFlag(&asJSON, "write JSON")})
	return cmd
}
