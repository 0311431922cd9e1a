package text

import (
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// speed is latency and throughput. Latency comes from an open loop if
// there is one, with what a bare client saw in the same rounds.
func speed(file results.File, group []results.Summary) document.Section {
	paced := group[0].Paced != nil
	simulated := file.Kind == results.Simulated
	bare := slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.AtRate().Reference != nil })
	always := KeptRounds(group)
	if bare {
		always += "; bare client: one INCR of one key for each request, in the same rounds"
		if paced && !simulated {
			always += "; times bare: decisions per second by those of bare clients that never pause"
		}
	}
	always = format.Join("; ", always, figures.Disturbance(group))
	return figureTable(speedTitle(&group[0], simulated), group, speedColumns(&group[0], bare, simulated), always)
}

func speedTitle(summary *results.Summary, simulated bool) string {
	loop := openLoop(&summary.AtRate().Params)
	switch {
	case simulated:
		return "MODELLED LATENCY  virtual time; no statement about real stores"
	case summary.Paced != nil:
		return fmt.Sprintf("SPEED  response time from the intended start in %s; "+
			"saturated: service time and throughput of %d callers that never pause", loop, summary.Params.Workers)
	case summary.Params.Loop == codes.OpenLoop:
		return "SPEED  response time from the intended start, service time from the actual one; " + loop
	}
	return fmt.Sprintf("SPEED  service time at concurrency %d, closed loop", summary.Params.Workers)
}

// speedColumns are those of strategies that were measured as the first one was.
func speedColumns(first *results.Summary, bare, simulated bool) []document.FigureColumn {
	open := first.AtRate().Params.Loop == codes.OpenLoop
	over := ""
	service := "service"
	if open {
		over = "response"
	}
	if first.Paced != nil {
		service = "saturated"
	}
	all := document.Figures("p50", "p99", "p99", "p99.9")
	all[2].Title += " interval"
	all[2].Show(p99Interval)
	for i := range all {
		all[i].Over = over
	}
	if bare {
		all = append(all, document.Figures("bare.p50", "bare.p99")...)
	}
	if open {
		all = append(all, document.Figures(service+".p50", service+".p99")...)
	}
	if simulated {
		return all
	}
	all = append(all, document.Figures("throughput", "ratio")...)
	if first.Paced != nil {
		all[len(all)-1].Title = "times\nbare" // there is less room
	}
	return append(all, document.Figures(figures.Table("speed")...)...)
}

// delay is how late requests of an open loop started, and whether
// they piled up.
func delay(group []results.Summary) document.Section {
	all := document.Figures(figures.Table("delay")...)
	all[len(all)-1].Left = true
	note := "rounds kept: " + keptOf(group, (*results.Summary).AtRate)
	if slices.ContainsFunc(group, func(summary results.Summary) bool { return summary.AtRate().Saturated > 0 }) {
		note += "; saturated: the backlog kept growing, so response times measure the queue, and grow with the duration"
	}
	const title = "SCHEDULING DELAY  how late requests started, medians over kept rounds; " +
		"backlog: how many were due and waited, in the worst round"
	return figureTable(title, group, all, note)
}

func p99Interval(summary *results.Summary, _ *figures.Notes) string {
	return figures.Of("p99").Timing(summary).Interval
}
