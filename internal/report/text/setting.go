package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
)

// Setting says what the strategies of one table have in common, or the points of a sweep. There has to be one.
func Setting(file results.File, group []results.Summary) []document.Entry {
	summary := &group[0]
	params := summary.Params
	var out []document.Entry
	entry := adder(&out)
	workload := ""
	if summary.Workload != file.Workload.Name {
		workload = "workload " + summary.Workload
	}
	entry("policy", format.Join(" · ", Policy(summary), workload))
	entry("asked for", streamText(params))
	for _, text := range troubleTexts(&params) {
		entry("trouble", text)
	}
	loop := "closed loop"
	if params.Loop == codes.OpenLoop {
		loop = openLoop(&params)
	}
	speed := ""
	if params.Speed != 0 && params.Speed != 1 {
		speed = fmt.Sprintf("at %g x speed", params.Speed)
	}
	entry("load", format.Join(" · ", loop, fixed(&params, "workers", format.Number(params.Workers, "worker")),
		fixed(&params, "instances", format.Number(params.Instances, "instance")),
		fixed(&params, "retries", format.Plural(int64(params.Retries), "client retry", "client retries")), speed,
		boundText(params),
		some(int64(params.Sources), "process", "processes")))
	if params.DecisionTimeoutNS > 0 {
		entry("decision timeout", fixed(&params, "decision-timeout", time.Duration(params.DecisionTimeoutNS).String()))
	}
	entry("connections", fixed(&params, "pool", poolText(params)))
	for _, text := range placementTexts(group) {
		entry("cores", text)
	}
	entry("rounds", roundsText(group))
	return out
}

// Policy says which policy was tried, with which limit if that is not its own, and which second one each request is
// charged to as well.
func Policy(summary *results.Summary) string {
	return format.Join("; each request also: ", firstPolicy(summary), summary.Params.Second)
}

func firstPolicy(summary *results.Summary) string {
	params := &summary.Params
	limit := fixed(params, "limit", format.Units(params.Limit, params.Unit))
	tried := ""
	if params.PolicyLimit > 0 {
		limit = format.Units(params.PolicyLimit, params.Unit)
		tried = fixed(params, "limit", "here with a limit of "+format.Count(params.Limit))
	}
	if unicode.IsDigit(rune((summary.Policy + " ")[0])) { // its name is a text
		return format.Join(", ", summary.Policy, tried)
	}
	return summary.Policy + ": " + format.Join(", ", limit, params.WindowText(), tried)
}

// streamText says which parameters of the request stream were asked for.
func streamText(params results.Params) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(params.Workload)) {
		parts = append(parts, fixed(&params, name, name+" "+params.Workload[name]))
	}
	return format.Join(" · ", parts...)
}

// troubleTexts are the events that go wrong, except those that a sweep varies.
func troubleTexts(params *results.Params) (out []string) {
	_, latency := params.Point["latency"]
	for _, event := range params.Trouble {
		_, varies := params.Point[string(event.What.Word)]
		if varies || latency && event.Kind() == trouble.Network {
			continue
		}
		out = append(out, event.String())
	}
	return out
}

// poolText: 0 is how the command line leaves the size to the harness.
func poolText(params results.Params) string {
	switch {
	case params.Cold:
		return "cold: one for each command, pipeline or transaction, opened for it and closed after it; reference loops " +
			"keep theirs"
	case params.Pool == 0:
		return "default pools: what a strategy asks for, or one connection per worker, at most 64 to Redis and 16 to " +
			"PostgreSQL, per instance"
	}
	return format.Plural(int64(params.Pool), "connection", "connections") + " per instance and store"
}

// boundText says how long a round is. At a rate that varies, requests follow from the duration.
func boundText(params results.Params) string {
	requests := fixed(&params, "requests", some(params.Requests, "request", "requests"))
	duration := ""
	if params.DurationNS > 0 {
		requests = fixed(&params, "rate", requests)
		duration = fixed(&params, "duration", time.Duration(params.DurationNS).String())
	}
	return surrounded("", format.Join(" or ", requests, duration), " per round")
}

// openLoop says how requests arrive. A trace's have no rate of their own.
func openLoop(params *results.Params) string {
	text := "open loop, " + params.Arrivals
	if params.RatePerS == 0 {
		return text
	}
	return text + fixed(params, "rate", " at "+format.Digits(params.RatePerS)+" requests/s"+
		surrounded(" (", format.Plain(params.RateFrom), ")"))
}

// placementTexts say on which cores the strategies of one table ran, and why, and on
// which they ran in the open loops at the common rate, if there are any.
func placementTexts(group []results.Summary) []string {
	var paced []results.Summary
	for i := range group {
		if summary := group[i].Paced; summary != nil {
			paced = append(paced, *summary)
		}
	}
	out := placements(group)
	for _, text := range placements(paced) {
		out = append(out, "at the common rate: "+text)
	}
	return out
}

// placements are the placement of most summaries first, and the others with the
// names of the strategies.
func placements(group []results.Summary) []string {
	var names collect.By[string, string]
	for i := range group {
		if placement := group[i].Placement; placement != nil {
			names.Add(placementText(placement), group[i].Label)
		}
	}
	return commonFirst(&names, ": ")
}

// commonFirst are texts: what most have first, and the others after the names of those that have them.
func commonFirst(names *collect.By[string, string], between string) (out []string) {
	names.Sort()
	for i, text := range names.Keys {
		if i > 0 {
			text = strings.Join(names.Of[text], ", ") + between + text
		}
		out = append(out, text)
	}
	return out
}

func placementText(placement *results.Placement) string {
	var parts []string
	if placement.Harness != "" {
		parts = append(parts, "harness on "+placement.Harness)
	}
	if placement.Stores != "" {
		parts = append(parts, "stores on "+placement.Stores)
	}
	if len(parts) == 0 {
		parts = append(parts, "shared by harness and stores")
	}
	return fmt.Sprintf("%s, GOMAXPROCS %d (%s: %s)", strings.Join(parts, ", "), placement.Procs, placement.Mode,
		placement.Reason)
}
