package group

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
)

// gates are conditions that a command requires.
type gates struct {
	Required        []string
	Undecided       string // what gates do that cannot be decided
	Against, Format string
	Gates           []compare.Gate // of Required, once they are read
}

const undecidedFail, undecidedPass = "fail", "pass"

// Conditions are the gates of a command.
func (s *Settings) Conditions() []settings.Setting {
	return []settings.Setting{{Name: "require", Common: true, Title: settings.Gates, Value: settings.List(&s.Required),
		Complete: cobra.NoFileCompletions, Computed: true}}
}

// IfUndecided says what a gate does that cannot be decided.
func (s *Settings) IfUndecided() []settings.Setting {
	return []settings.Setting{{Name: "undecided", Title: settings.Gates,
		Value: settings.Text(&s.Undecided, undecidedFail, undecidedPass), Computed: true,
		Doc: "what a gate does that cannot be decided, e.g. on timings of a noisy machine: fail or pass (default " +
			undecidedFail + ")"}}
}

// Other is a program to compare with.
func (s *Settings) Other() []settings.Setting {
	return []settings.Setting{{Name: "against", Common: true, Title: settings.Gates, Value: settings.Named(&s.Against,
		"the path of a program"),
		Computed: true}}
}

// Formats says how what a command found is shown.
func (s *Settings) Formats() []settings.Setting {
	formats := ComparisonFormats()
	return []settings.Setting{{Name: "format", Title: settings.Gates, Value: settings.Text(&s.Format, formats...),
		Doc: "how to show it: " + strings.Join(formats, ", ") + "; github also writes the job's summary"}}
}

// ComparisonFormats are the names of [render.Comparisons].
func ComparisonFormats() (out []string) {
	for _, renderer := range render.Comparisons() {
		out = append(out, renderer.Name)
	}
	return out
}

// RunGates reads the gates on runs.
func (s *Settings) RunGates() error {
	return s.readGates(compare.ParseRunGate)
}

// SearchGates reads the gates on searches for some of the properties, or for any.
func (s *Settings) SearchGates(properties []results.Property) error {
	if properties == nil {
		properties = explore.Properties()
	}
	return s.readGates(func(text string) (compare.Gate, error) { return compare.ParseSearchGate(text, properties) })
}

func (s *Settings) readGates(parse func(string) (compare.Gate, error)) error {
	s.Gates = nil
	for _, text := range s.Required {
		gate, err := parse(text)
		if err != nil {
			return s.Wrong("require", err)
		}
		if s.Undecided == undecidedPass {
			gate = gate.Lenient()
		}
		s.Gates = append(s.Gates, gate)
	}
	return nil
}
