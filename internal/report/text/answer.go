package text

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/results"
)

// Decision is what somebody who must choose reads first, of runs and sweeps alike.
type Decision struct {
	// Advice is the answer in sentences: what to use and why, and what it was chosen over. An empty one
	// stands between settings.
	Advice []string
	// Table has a row for each strategy, or for each value of a sweep. Its title says what all rows have in common. In
	// brief its columns are at most seven, and its notes at most three.
	Table *document.Table
	// Untested is what is left open.
	Untested []ranking.Untested
	// Setting is what all points of a sweep have in common.
	Setting []document.Entry
}

// Decide says of settings which strategy to use, with a row for each strategy, and a heading above
// each setting if there are several.
func Decide(file *results.File, settings ...ranking.Setting) Decision {
	decision := Decision{Table: &document.Table{}}
	if len(settings) == 0 {
		decision.Advice = []string{"No strategy was run."}
		if file.Considered != nil && !file.Interrupted {
			decision.Advice = []string{"No strategy is left to measure."}
		}
		return decision
	}
	verdicts := newVerdicts(file, settings)
	table := verdicts.table()
	table.Title = Policy(settings[0].Strategies[0].Summary) + " · " + loadText(file, &settings[0])
	if len(settings) > 1 {
		table.Title = loadText(file, &settings[0])
	}
	for i := range settings {
		setting := &settings[i]
		if len(settings) > 1 {
			heading := Policy(setting.Strategies[0].Summary)
			if load := loadText(file, setting); load != table.Title {
				heading += " · " + load
			}
			table.AddHeading(format.Plain(heading), document.Neutral)
		}
		for j := range setting.Strategies {
			strategy := &setting.Strategies[j]
			extent := document.Always
			if setting.HasCandidates() && strategy.Group == ranking.Baseline {
				extent = document.Full
			}
			table.Rows = append(table.Rows, verdicts.row(strategy, extent))
		}
		if setting.HasCandidates() {
			decision.advise(len(settings) > 1, setting, file.Kind == results.Simulated)
		}
		decision.Untested = slices.Concat(setting.Untested, decision.Untested) // the command that is shown is the last one
	}
	decision.show(table, verdicts)
	return decision
}

// show takes a table that has all its rows.
func (d *Decision) show(table *document.Table, verdicts *verdicts) {
	table.Title = format.Plain(table.Title)
	table.Notes = verdicts.notes()
	table.FullNotes = verdicts.fullNotes()
	d.Table = table
}

func (d *Decision) advise(several bool, setting *ranking.Setting, simulated bool) {
	sentences := Advice(simulated, setting)
	if several {
		sentences[0] = setting.Strategies[0].Summary.Policy + ": " + sentences[0]
	}
	if d.Advice != nil {
		d.Advice = append(d.Advice, "")
	}
	d.Advice = append(d.Advice, sentences...)
}

func (d *Decision) advice() (out document.Section) {
	for _, sentence := range d.Advice {
		out = append(out, document.Text(format.Plain(sentence))...)
	}
	return out
}

// table is empty if nothing was run.
func (d *Decision) table() document.Section {
	if len(d.Table.Rows) == 0 {
		return nil
	}
	return document.Section{d.Table}
}

// candidates are the strategies to choose from, or the baselines if nothing else ran.
func candidates(setting *ranking.Setting) (out []*ranking.Strategy) {
	baselines := !setting.HasCandidates()
	for i := range setting.Strategies {
		if strategy := &setting.Strategies[i]; baselines || strategy.Group != ranking.Baseline {
			out = append(out, strategy)
		}
	}
	return out
}

// loadText is what the strategies of one setting have in common, except the policy.
func loadText(file *results.File, setting *ranking.Setting) string {
	summary := setting.Strategies[0].Summary
	params := &summary.Params
	load := fixed(params, "workers", format.Plural(int64(params.Workers), "worker", "workers"))
	if r := &summary.AtRate().Params; r.Loop == codes.OpenLoop && r.RatePerS > 0 {
		load = fixed(params, "rate", format.Digits(r.RatePerS)+" requests/s") + surrounded(" (", r.RateFrom, ")")
	}
	return format.Join(" · ", summary.Workload, load,
		fixed(params, "instances", format.Plural(int64(params.Instances), "instance", "instances")),
		rounds(file), file.StoresText())
}

// fixed is the text of a parameter, unless a sweep varies it.
func fixed(params *results.Params, name, text string) string {
	if _, varies := params.Point[name]; varies {
		return ""
	}
	return text
}

// untested says what is left open, with one command that tests some of it.
func (d *Decision) untested() document.Section {
	var what []string
	command := ""
	add := ""
	for _, untested := range d.Untested {
		what = collect.Union(what, untested.What)
		command = cmp.Or(untested.Command, command)
		add = cmp.Or(untested.Add, add)
	}
	if command == "" && add != "" {
		command = "this command again, with " + add
	}
	if what == nil {
		return nil
	}
	text := "Not tested: " + strings.Join(what, "; ") + "."
	if command == "" {
		return document.Text(format.Plain(text))
	}
	return append(document.Text(format.Plain(text+" To test more:")), line("  "+format.Plain(command)))
}
