package session

import (
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
)

// Several makes a run that several processes measure as one. It is nil in a program that has no such runs; an import
// may set it, for the command run of every command line that is made afterwards.
var Several func() Measurer

// Measurer measures in place of the command run if its settings say so.
type Measurer interface {
	// Settings are those that run takes for it.
	Settings() []settings.Setting
	// Prepare reports whether this run is the measurer's. If it is, it changes the settings before the run is planned by
	// them.
	Prepare(s *group.Settings) (bool, error)
	// Run measures what was planned.
	Run(cmd *cobra.Command, s *group.Settings, cfg *measure.Config) error
}
