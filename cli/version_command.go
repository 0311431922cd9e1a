package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/results"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Say which version this is, and what it was built from",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, commit := buildVersion()
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), map[string]any{
					"version": version, "commit": commit, "date": buildDate(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
					"schema": results.SchemaVersion,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "quotabench %s\ncommitted  %s\nbuilt by   %s for %s/%s\nwrites     schema %d of results.json\n",
				Version(), cmp.Or(buildDate(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH, results.SchemaVersion)
			return err
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// addJSON adds the flag of commands that have no table of settings.
func addJSON(cmd *cobra.Command, p *bool) {
	cmd.Flags().BoolVar(p, "json", false, "write JSON")
}

// encodeJSON writes one document.
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
