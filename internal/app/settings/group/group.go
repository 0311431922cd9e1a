// Package group declares the settings that commands share, each once, in groups. A command
// names the groups that it takes, and declares what it alone has.
package group

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
)

// Command is what settings are for. Some have a text, a bound or a default of their own there.
type Command string

// The commands that share settings.
const (
	Run     Command = "run"
	Sim     Command = "sim"
	Explore Command = "explore"
	Compare Command = "compare"
	Claims  Command = "claims"
	Faults  Command = "faults"
	Own     Command = "own" // those that look into servers of the user's own
)

// Settings are the values of all groups. Those of groups that a command does not take keep
// their defaults.
type Settings struct {
	*settings.Set
	command Command

	// Config has the parameters of a measurement, and of the plan of a simulation, as they are given. Those that are read
	// from texts are below.
	measure.Config
	subject
	stream
	load
	troubles
	storeChoice
	gates
	output
}

// New returns the defaults of a command.
func New(command Command) *Settings {
	s := &Settings{command: command}
	s.Strategies = []string{"core"}
	s.Policy = "agent-api"
	s.Instances = 2
	s.Seed = 1
	s.Workload = "hot-key"
	s.Arrivals = poisson
	s.Cores = measure.Cores{Mode: measure.CoresAuto}
	s.From = map[string]*string{}
	switch command {
	case Run:
		s.Workers = 50
		s.Strategies = nil
	case Explore:
		s.Strategies = nil
		s.Policy = ""
		s.Instances = 0
	case Compare, Claims, Faults:
		s.Format = ComparisonFormats()[0]
	}
	return s
}

// Register makes the flags of a command from groups, in that order.
func (s *Settings) Register(cmd *cobra.Command, groups ...[]settings.Setting) {
	cmd.Flags().SortFlags = false
	s.Set = settings.New(cmd, groups...)
}

// measured reports whether the command uses the wall clock and real stores.
func (s *Settings) measured() bool { return s.command == Run }

// by is what a command has of its own, or else what all have.
func by[T any](s *Settings, all T, own map[Command]T) T {
	if v, ok := own[s.command]; ok {
		return v
	}
	return all
}

// texts are help texts of commands.
type texts = map[Command]string

// output is what is shown, and what is written where.
type output struct {
	History, Metrics, Out string
	JSON, Quiet, Verbose  bool
	File                  string // of --config
	PrintOnly             bool
}

// Kept is what is kept or served of each run.
func (s *Settings) Kept() []settings.Setting {
	return []settings.Setting{
		{Name: "history", Title: settings.Output, Value: settings.Text(&s.History), Computed: true},
		{Name: "metrics", Title: settings.Output, Value: settings.Named(&s.Metrics, "an address such as 127.0.0.1:9464"),
			Computed: true,
			Complete: settings.Words("127.0.0.1:9464")},
	}
}

// Output says what is shown, and where files go.
func (s *Settings) Output() []settings.Setting {
	return []settings.Setting{
		{Name: "quiet", Title: settings.Output, Value: settings.Bool(&s.Quiet)},
		{Name: "json", Common: true, Title: settings.Output, Value: settings.Bool(&s.JSON)},
		{Name: "out", Short: "o", Common: true, Title: settings.Output, Value: settings.Text(&s.Out), Computed: true},
	}
}

// Verbosity says whether all is shown.
func (s *Settings) Verbosity() []settings.Setting {
	return []settings.Setting{{Name: "verbose", Common: true, Title: settings.Output, Value: settings.Bool(&s.Verbose)}}
}

// ConfigFile takes settings from a file.
func (s *Settings) ConfigFile() []settings.Setting {
	return []settings.Setting{{Name: settings.FileFlag, Title: settings.Output,
		Value: settings.Named(&s.File, "the name of a file"), FlagOnly: true,
		Doc: "take settings from a YAML `file`, one key per flag, also in a section " + string(s.command) +
			"; flags win over it"}}
}

// PrintConfig writes what [Settings.ConfigFile] takes.
func (s *Settings) PrintConfig(nothing string) []settings.Setting {
	return []settings.Setting{{Name: "print-config", Title: settings.Output, Value: settings.Bool(&s.PrintOnly),
		FlagOnly: true,
		Doc:      "write the configuration in force as YAML and " + nothing + " nothing"}}
}

// Read takes the settings of the file, if there is one, and strategies given as arguments,
// which win over those of the file.
func (s *Settings) Read(args []string) error {
	if s.File != "" {
		if err := s.ReadFile(s.File); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		s.SetArgs("strategy", args)
	}
	return nil
}

// Items of lists whose elements may also be separated by commas.
func Items(lists []string) (out []string) {
	for _, text := range lists {
		out = append(out, splitComma(text)...)
	}
	return slices.DeleteFunc(out, func(text string) bool { return text == "" })
}
