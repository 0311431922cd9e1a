package cli

import (
	"cmp"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/internal/settings/group"
)

// tokenVariable stands for --token, which others would see on a command line.
const tokenVariable = "QUOTABENCH_TOKEN"

func coordinateCommand() *cobra.Command {
	at := meeting{at: "127.0.0.1:7600", wait: 5 * time.Minute}
	n := 0
	cmd := described("coordinate", &cobra.Command{
		Args: needs(1, 0, "coordinate takes the run that generators share: give --generators N run ..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "run" {
				return usagef("generators share a run, not %q: give --generators N run ...", args[0])
			}
			s := group.New(group.Run)
			run := another("run")
			registerRun(run, s)
			strategies, err := parseFlags(run, args[1:])
			if err != nil {
				return err
			}
			if n == 0 || s.Generators > 0 || s.Generator != "" {
				return usagef("say how many generators there are by coordinate --generators N")
			}
			s.Generators = n
			at.token = cmp.Or(at.token, os.Getenv(tokenVariable), coordinate.NewToken())
			cfg, err := workedOut(cmd, s, strategies, s.Measurement)
			if err != nil {
				return err
			}
			return coordinated(cmd, s, &cfg, at)
		},
	})
	settings.New(cmd, []settings.Setting{
		{Name: "generators", Title: settings.Load, Value: settings.Whole(&n, 1, group.MostGenerators)},
		{Name: "at", Title: settings.Load, Value: settings.Named(&at.at, "an address or a URL"), Secret: true},
		{Name: "token", Title: settings.Load, Value: settings.Text(&at.token), Computed: true},
		{Name: "wait", Title: settings.Load, Value: settings.Span(&at.wait, 24*time.Hour)},
	})
	cmd.Flags().SetInterspersed(false)
	return cmd
}
