package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/render"
)

// gates are conditions that a command requires.
type gates struct {
	Required        []string
	Undecided       string // what gates do that cannot be decided
	Against, Format string
	Tolerances      []string
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

// Tolerated are the tolerances of a comparison.
func (s *Settings) Tolerated() []settings.Setting {
	return []settings.Setting{{Name: "tolerance", Title: settings.Gates, Value: settings.List(&s.Tolerances),
		Complete: completeTolerances}}
}

func completeTolerances(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, text := range slices.Concat(compare.Figures(), compare.Timings()) {
		out = append(out, text+"=")
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}

// Comparison are the options of a comparison that the settings give, without gates.
func (s *Settings) Comparison() (options compare.Options, err error) {
	options.Lenient = s.Undecided == undecidedPass
	options.Tolerances = map[string]compare.Tolerance{}
	for _, text := range Items(s.Tolerances) {
		figure, tolerance, err := parseTolerance(text)
		if err != nil {
			return options, s.Wrong("tolerance", err)
		}
		options.Tolerances[figure] = tolerance
	}
	return options, nil
}

// parseTolerance reads "figure=amount" or "figure=percent%".
func parseTolerance(text string) (figure string, tolerance compare.Tolerance, err error) {
	figure, amount, ok := strings.Cut(text, "=")
	figure = strings.TrimSpace(figure)
	if !ok {
		return "", tolerance, fmt.Errorf("%q says no amount: give one such as leak=2, bytes=5%% or p99=20%%", text)
	}
	known := slices.Concat(compare.Figures(), compare.Timings())
	if !slices.Contains(known, figure) {
		return "", tolerance, quota.Unknown("figure", figure, known, "")
	}
	amount, tolerance.Percent = strings.CutSuffix(strings.TrimSpace(amount), "%")
	err = settings.Decimal(&tolerance.By, 1e15).Set(strings.TrimSpace(amount))
	if err != nil {
		return "", tolerance, fmt.Errorf("%q: %w, with %% for a share of the base", text, err)
	}
	if !tolerance.Percent && slices.Contains(compare.Timings(), figure) {
		return "", tolerance, fmt.Errorf("%q: a timing may become worse by a share of the base, e.g. %s=20%%", text, figure)
	}
	return figure, tolerance, nil
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
