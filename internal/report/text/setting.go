package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
)

// Setting says what the strategies of one table have in common, or the points of a sweep. There has to be one.
func Setting(f results.File, group []results.Summary) []Entry {
	s := &group[0]
	p := s.Params
	var out []Entry
	entry := adder(&out)
	workload := ""
	if s.Workload != f.Workload.Name {
		workload = "workload " + s.Workload
	}
	entry("policy", format.Join(" · ", Policy(s), workload))
	entry("asked for", streamText(p))
	entry("each request also", p.Second)
	for _, text := range troubleTexts(&p) {
		entry("trouble", text)
	}
	loop := "closed loop"
	if p.Loop == results.OpenLoop {
		loop = openLoop(&p)
	}
	speed := ""
	if p.Speed != 0 && p.Speed != 1 {
		speed = fmt.Sprintf("at %g x speed", p.Speed)
	}
	entry("load", format.Join(" · ", loop, fixed(&p, "workers", format.Number(p.Workers, "worker")),
		fixed(&p, "instances", format.Number(p.Instances, "instance")),
		fixed(&p, "retries", format.Plural(int64(p.Retries), "client retry", "client retries")), speed, boundText(p),
		some(int64(p.Sources), "process", "processes")))
	if p.DecisionTimeoutNS > 0 {
		entry("decision timeout", fixed(&p, "decision-timeout", time.Duration(p.DecisionTimeoutNS).String()))
	}
	entry("connections", fixed(&p, "pool", poolText(p)))
	entry("clients", clientsText(group))
	for _, text := range placementTexts(group) {
		entry("cores", text)
	}
	entry("rounds", roundsText(group))
	return out
}

// Policy says which policy was tried, and with which limit if that is not its own.
func Policy(s *results.Summary) string {
	p := &s.Params
	limit := fixed(p, "limit", format.Units(p.Limit, p.Unit))
	tried := ""
	if p.PolicyLimit > 0 {
		limit = format.Units(p.PolicyLimit, p.Unit)
		tried = fixed(p, "limit", "tried with "+format.Count(p.Limit))
	}
	if unicode.IsDigit(rune((s.Policy + " ")[0])) { // its name is a text
		return format.Join(", ", s.Policy, tried)
	}
	return s.Policy + ": " + format.Join(", ", limit, p.WindowText(), tried)
}

// streamText says which parameters of the request stream were asked for.
func streamText(p results.Params) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Workload)) {
		parts = append(parts, fixed(&p, name, name+" "+p.Workload[name]))
	}
	return format.Join(" · ", parts...)
}

// troubleTexts are the events that go wrong, except those that a sweep varies.
func troubleTexts(p *results.Params) (out []string) {
	_, latency := p.Point["latency"]
	for _, e := range p.Trouble {
		_, varies := p.Point[string(e.What.Word)]
		if varies || latency && e.Kind() == trouble.Network {
			continue
		}
		out = append(out, e.String())
	}
	return out
}

// poolText: 0 is how the command line leaves the size to the harness.
func poolText(p results.Params) string {
	switch {
	case p.Cold:
		return "cold: one for each command, pipeline or transaction, opened for it and closed after it; reference loops keep theirs"
	case p.Pool == 0:
		return "default pools: what a strategy asks for, or one connection per worker, at most 64 to Redis and 16 to PostgreSQL, per instance"
	}
	return format.Plural(int64(p.Pool), "connection", "connections") + " per instance and store"
}

// clientsText says what kinds of Redis clients there are other than the plain one.
func clientsText(group []results.Summary) string {
	var parts []string
	for i := range group {
		if c := group[i].Params.Client; c != "" && !slices.Contains(parts, c) {
			parts = append(parts, c)
		}
	}
	return surrounded("strategy@KIND has a Redis client of that kind: ", strings.Join(parts, ", "),
		"; all others, and the bare client, the plain one")
}

// boundText says how long a round is. At a rate that varies, requests follow from the duration.
func boundText(p results.Params) string {
	requests := fixed(&p, "requests", some(p.Requests, "request", "requests"))
	duration := ""
	if p.DurationNS > 0 {
		requests = fixed(&p, "rate", requests)
		duration = fixed(&p, "duration", time.Duration(p.DurationNS).String())
	}
	return surrounded("", format.Join(" or ", requests, duration), " per round")
}

// openLoop says how requests arrive. A trace's have no rate of their own.
func openLoop(p *results.Params) string {
	text := "open loop, " + p.Arrivals
	if p.RatePerS == 0 {
		return text
	}
	return text + fixed(p, "rate", " at "+format.Digits(p.RatePerS)+" requests/s"+surrounded(" (", format.Plain(p.RateFrom), ")"))
}

// placementTexts say on which cores the strategies of one table ran, and why, and on
// which they ran in the open loops at the common rate, if there are any.
func placementTexts(group []results.Summary) []string {
	var paced []results.Summary
	for i := range group {
		if p := group[i].Paced; p != nil {
			paced = append(paced, *p)
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
		if p := group[i].Placement; p != nil {
			names.Add(placementText(p), group[i].Label)
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

func placementText(p *results.Placement) string {
	var parts []string
	if p.Harness != "" {
		parts = append(parts, "harness on "+p.Harness)
	}
	if p.Stores != "" {
		parts = append(parts, "stores on "+p.Stores)
	}
	if len(parts) == 0 {
		parts = append(parts, "shared by harness and stores")
	}
	return fmt.Sprintf("%s, GOMAXPROCS %d (%s: %s)", strings.Join(parts, ", "), p.Procs, p.Mode, p.Reason)
}
