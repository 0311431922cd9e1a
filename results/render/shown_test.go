package render_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/export"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/results"
)

// Reports say each parameter, the names of benchmarks tell runs apart that differ in it, and a command for what was not
// tested repeats it, or there is none. Few need not be there.
func TestEveryParameterIsShown(t *testing.T) {
	absent := map[string][]string{
		"reports":    {"Label", "Subjects", "Stream"}, // rows have labels
		"benchmarks": {"Client", "Unit", "PolicyLimit", "RateFrom", "Subjects", "Stream", "Requests", "DurationNS", "Point"},
		// The policy and the label say some, and the default of the rest is right.
		"commands": {"PolicyLimit", "Unit", "Window", "RateFrom", "Subjects", "Client", "Requests", "DurationNS", "Point",
			"Stream"},
	}
	shown := func(parameter string) map[string]string {
		f := fixture.New(1, fixture.Strategies[0])
		p := &f.Runs[0].Params
		p.Loop = codes.OpenLoop
		p.Arrivals = "poisson"
		p.RatePerS = 500
		p.Instances = 1
		before := f.Runs[0]
		for _, value := range []string{`"planted"`, `77`, `true`, `["planted", "twice"]`, `{"planted": "77"}`} {
			if json.Unmarshal([]byte(`{"`+parameter+`": `+value+`}`), p) == nil {
				break
			}
		}
		out := map[string]string{"reports": fmt.Sprint(text.Setting(f, f.Summarised())),
			"commands": ranking.Of(f)[0].Untested[0].Command}
		f.Runs = append(f.Runs, before)
		for line := range strings.Lines(string(export.GoBench(&f))) {
			if name, _, ok := strings.Cut(line, "\t"); ok {
				out["benchmarks"] += name + "\n"
			}
		}
		return out
	}
	one := shown("none")
	if one["commands"] == "" {
		t.Fatal("there is no command that could repeat a parameter")
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[results.Params]()) {
		if field.Anonymous { // its fields follow
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		for place, said := range shown(name) {
			if same := slices.Contains(absent[place], field.Name); (said == one[place]) != same {
				t.Errorf("%s, in %s: its value makes a difference: %v\n%s", field.Name, place, same, said)
			}
		}
	}
}
