package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
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
	entry("outages", outagesText(p.Outages))
	entry("clocks ahead by", strings.Join(p.Skew, ", "))
	entry("network", fixed(&p, "latency", strings.Join(p.Network, " · ")))
	entry("killed callers", p.KillCallers)
	entry("overwritten counters", strings.Join(p.Overwrites, ", "))
	entry("limit", limitsText(p))
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
	limit, tried := fixed(p, "limit", format.Units(p.Limit, p.Unit)), ""
	if p.PolicyLimit > 0 {
		limit, tried = format.Units(p.PolicyLimit, p.Unit), fixed(p, "limit", "tried with "+format.Count(p.Limit))
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

// share renders a parameter between 0 and 1 as it was given, in percent.
func share(x float64) string { return fmt.Sprintf("%.6g %%", 100*x) }

// outagesText renders "redis:0.3-0.6" in words, and what it cannot read as it is.
func outagesText(outages []string) string {
	var parts []string
	for _, o := range outages {
		store, span, _ := strings.Cut(o, ":")
		var from, to float64
		if store == "pause" || store == "restart" {
			o = stopText(store, span)
		} else if n, err := fmt.Sscanf(span, "%g-%g", &from, &to); n == 2 && err == nil {
			o = fmt.Sprintf("%s from %s to %s", store, share(from), share(to))
			switch _, back, _ := strings.Cut(span, ":"); {
			case back == "empty":
				o += " (coming back empty)"
			case back == "failover":
				o += " (coming back as its replica)"
			case strings.HasPrefix(back, "failover="):
				o += " (coming back as its replica of " + strings.TrimPrefix(back, "failover=") + " before)"
			case back != "":
				o += " (" + back + ")"
			}
		}
		parts = append(parts, o)
	}
	return surrounded("", strings.Join(parts, ", "), " of each round")
}

// stopText renders a pause or a restart of instances, "0.5+11s:1" or "0.5", in words.
func stopText(what, text string) string {
	text, instance, one := strings.Cut(text, ":")
	at, length, _ := strings.Cut(text, "+")
	who := "all instances"
	if one {
		who = "instance " + instance
	}
	x, _ := strconv.ParseFloat(at, 64)
	return who + map[string]string{"pause": " paused for " + length, "restart": " restarted"}[what] + " at " + share(x)
}

// limitsText renders "0.5:40" in words, and what it cannot read as it is.
func limitsText(p results.Params) string {
	var parts []string
	for _, c := range p.LimitChanges {
		var at float64
		var limit int64
		if n, err := fmt.Sscanf(c, "%g:%d", &at, &limit); n == 2 && err == nil {
			c = fmt.Sprintf("%s from %s on", format.Units(limit, p.Unit), share(at))
		}
		parts = append(parts, c)
	}
	return surrounded("changes: ", strings.Join(parts, ", "), " of each round")
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
	requests, duration := fixed(&p, "requests", some(p.Requests, "request", "requests")), ""
	if p.DurationNS > 0 {
		requests, duration = fixed(&p, "rate", requests), fixed(&p, "duration", time.Duration(p.DurationNS).String())
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
	var names groups.By[string, string]
	for i := range group {
		if p := group[i].Placement; p != nil {
			names.Add(placementText(p), group[i].Label)
		}
	}
	return commonFirst(&names, ": ")
}

// commonFirst are texts: what most have first, and the others after the names of those that have them.
func commonFirst(names *groups.By[string, string], between string) (out []string) {
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
