package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/scaffold"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/format"
)

func initCommand() *cobra.Command {
	var clone string
	var claimsOnly bool
	cmd := described("init", &cobra.Command{
		Args: needs(1, 1, "init needs one directory, and got %d: give a new one, e.g. quotabench init limits"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if claimsOnly {
				if err := scaffold.WriteClaims(args[0]); err != nil {
					return usagef("%w: name another directory", err)
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "written to %s: %s\nnext: quotabench claims %s\n", args[0],
					scaffold.Claims,
					format.Quoted(filepath.Join(args[0], scaffold.Claims)))
				return err
			}
			from, err := scaffold.From(clone, args[0])
			if err != nil {
				return usagef("%w", err)
			}
			names, err := scaffold.Write(args[0], from)
			if err != nil {
				return usagef("%w: name another directory", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "written to %s: %s\nnext: cd %s && go mod tidy && go test .\n",
				args[0], strings.Join(names, ", "), format.Quoted(args[0]))
			return err
		},
	})
	settings.New(cmd, []settings.Setting{
		{Name: "replace", Value: settings.Named(&clone, "a directory")},
		{Name: "claims", Value: settings.Bool(&claimsOnly)},
	})
	return cmd
}
