package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
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
				return encodeJSON(cmd.OutOrStdout(), map[string]string{
					"version": version, "commit": commit, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "quotabench %s, %s, %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
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
