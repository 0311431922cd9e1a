package plot

import (
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// TestRowsSayWhatDiffers: a label has the policy if policies differ, and nothing that all rows share.
func TestRowsSayWhatDiffers(t *testing.T) {
	name := fixture.Strategies[0]
	for want, change := range map[string]func(r *results.Run){
		"":             func(*results.Run) {},
		" (login)":     func(r *results.Run) { r.Policy = "login" },
		" (steady)":    func(r *results.Run) { r.Workload = "steady" },
		" (setting 2)": func(r *results.Run) { r.Params.Workers++ },
		" (login, own)": func(r *results.Run) {
			r.Policy = "login"
			r.Workload = "own"
		},
	} {
		f := fixture.New(1, name)
		other := fixture.New(1, name).Runs
		change(&other[0])
		f.Runs = append(f.Runs, other...)
		var labels []string
		for _, s := range plotted(f) {
			labels = append(labels, s.label)
		}
		if last := labels[len(labels)-1]; last != f.Runs[0].Params.Label+want || want != "" &&
			slices.Contains(labels[:1], last) {
			t.Errorf("labels %q, want the last to end in %q", labels, want)
		}
		if said := caption(f, plotted(f)); strings.Contains(said, "several policies") != strings.Contains(want,
			"login") {
			t.Errorf("%q with labels %q", said, labels)
		}
	}
}
