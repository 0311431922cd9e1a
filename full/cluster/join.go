package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/results"
)

// source is the run of one generator in a round.
type source struct {
	name string // of the generator, e.g. "2/3"
	host results.Host
	run  *results.Run
}

// othersLimit is the share of processor time that programs which are no generator of the run may use on a machine.
const othersLimit = 0.1

// codeUndecided is the finding that a run of several generators has no verdict.
const codeUndecided = "sources-undecided"

// joinRuns makes one run of those of generators, which had the subjects in common. Their verdicts say nothing together,
// so the run has none: it is undecided until all histories are judged, see [decide].
func joinRuns(sources []source) (results.Run, error) {
	audit := results.Audit{Valid: true, Reasons: []results.Reason{}}
	var timed []*results.Run
	for i := range sources {
		source := &sources[i]
		of := "generator " + source.name + ": "
		add := func(code, discards, detail string) { audit.Discard(code, discards, of+detail) }
		for _, reason := range source.run.Audit.Reasons {
			if reason.Discards == codes.DiscardsRound {
				reason.Discards = codes.DiscardsNothing // of all others they count
			}
			reason.Detail = of + reason.Detail
			if reason.Short != "" {
				reason.Short = of + reason.Short
			}
			audit.Add(reason)
		}
		if !source.run.Audit.Planned() {
			add("source-untimed", codes.DiscardsNothing, "its latencies are left out: it did not go as planned")
			continue
		}
		if share := source.others(sources); share > othersLimit {
			add("machine-busy", codes.Disturbs,
				fmt.Sprintf("other programs used %.0f %% of the processor time during the run", 100*share))
		}
		timed = append(timed, source.run)
	}
	out := added(sources)
	if len(timed) == 0 {
		audit.Discard("sources-untimed", codes.DiscardsRound, "no generator went as planned")
		for i := range sources {
			timed = append(timed, sources[i].run)
		}
	}
	audit.Discard(codeUndecided, codes.DiscardsCorrectness, "the histories of the generators were not judged together")
	out.Audit = audit
	return out, joinLatencies(&out, timed)
}

// others is the share of the processor time of a generator's machine that programs used which are
// no generator of the run: what other generators used is the run's own load.
func (s *source) others(all []source) float64 {
	share := s.run.OthersShare
	for i := range all {
		source := &all[i]
		if source.run != s.run && source.host == s.host {
			used := source.run.Cost.ClientCPU * float64(source.run.Issued)
			share -= used / float64(max(s.run.ElapsedNS, 1)) / float64(max(s.host.CPUs, 1))
		}
	}
	return share
}

// added is the sum of the runs of all generators. What only one process can tell of itself is left out: its placement,
// what it waited for, and the stalls behind its percentiles.
func added(sources []source) results.Run {
	out := emptied(sources[0].run)
	params := &out.Params
	params.Sources = len(sources)
	for i := range sources {
		run := sources[i].run
		params.Workers += run.Params.Workers
		params.Instances += run.Params.Instances
		out.DidNotReturn += run.DidNotReturn
		out.ElapsedNS = max(out.ElapsedNS, run.ElapsedNS)
		out.Partial = out.Partial || run.Partial
		out.Lateness = together(out.Lateness, run.Lateness)
		out.Add(&run.Requests)
		out.DegradedAdmitted += run.DegradedAdmitted
		out.Settlement = together(out.Settlement, run.Settlement)
		out.Guarantee = clauses(out.Guarantee, run.Guarantee)
		out.Record = clauses(out.Record, run.Record)
		out.NotPromised = collect.Union(out.NotPromised, run.NotPromised...)
		addMeter(&out, run)
		addStored(&out, run)
		addWaits(&out, run)
	}
	out.Cost = cost(sources, out.Issued)
	return out
}

// emptied is a run like run without what follows from the runs of all generators.
func emptied(run *results.Run) results.Run {
	out := *run
	out.Params.Workers = 0
	out.Params.Instances = 0
	out.DidNotReturn = 0
	out.Partial = false
	out.Rates = results.Rates{}
	out.Placement = nil
	out.Waiting = nil
	out.Lateness = nil
	out.OverTime = nil
	out.Outages = nil
	out.Trace = ""
	out.Jobs = nil
	out.OthersShare = 0
	out.Requests = results.Requests{}
	out.DegradedAdmitted = 0
	out.Correctness = results.Correctness{}
	out.Promises = results.Promises{Guarantee: []results.Clause{}}
	out.Meter = nil
	out.Stored = nil
	out.PoolWait = nil
	return out
}

// together is the sum of two parts of records; nil if there is neither.
func together[T any](a, b *T) *T {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a
	stat.AddFields(&sum, b)
	return &sum
}

// clauses are those of a run and what another adds to them. None has a verdict yet.
func clauses(all, more []results.Clause) []results.Clause {
	for _, clause := range more {
		if slices.IndexFunc(all, func(x results.Clause) bool { return sameClause(&x, &clause) }) < 0 {
			all = append(all, clause)
		}
	}
	return all
}

func sameClause(x, y *results.Clause) bool {
	return x.Property == y.Property && x.Formula == y.Formula && x.Source == y.Source
}

func addMeter(out, r *results.Run) {
	for _, measure := range r.Meter {
		whole, known := collect.In(&out.Meter, measure, func(x results.Measure) bool { return x.Name == measure.Name })
		switch {
		case measure.Kind == "most":
			whole.Value = max(whole.Value, measure.Value)
		case known:
			whole.Value += measure.Value
		}
	}
}

func addStored(out, r *results.Run) {
	for _, k := range r.Stored {
		k.OverTime = nil // the moments of generators differ
		stored, known := collect.In(&out.Stored, k, func(x results.Stored) bool { return x.Store == k.Store })
		if known {
			*stored = results.NewStored(k.Store, stored.Subjects+k.Subjects, stored.Entries+k.Entries, stored.Bytes+k.Bytes, nil)
		}
	}
}

func addWaits(out, r *results.Run) {
	for _, wait := range r.PoolWait {
		whole, known := collect.In(&out.PoolWait, wait, func(poolWait results.PoolWait) bool {
			return poolWait.Store == wait.Store
		})
		if known {
			stat.AddFields(whole, &wait)
		}
	}
}

// cost is the cost per decision of all generators, and the first one's probe. Each saw what the servers did for all.
func cost(sources []source, issued int64) results.Cost {
	var c results.Cost
	sum := reflect.ValueOf(&c).Elem()
	for i := range sources {
		run := sources[i].run
		share := float64(run.Issued) / float64(max(issued, 1))
		own := reflect.ValueOf(run.Cost)
		for _, field := range reflect.VisibleFields(sum.Type()) {
			if field.Type.Kind() == reflect.Float64 {
				value := sum.FieldByIndex(field.Index)
				value.SetFloat(value.Float() + share*own.FieldByIndex(field.Index).Float())
			}
		}
		c.KeysAtEnd += run.Cost.KeysAtEnd
		c.KeysWithoutTTL += run.Cost.KeysWithoutTTL
		if c.Probe == nil {
			c.Probe = run.Cost.Probe
		}
	}
	c.RedisCPU /= float64(len(sources))
	c.PostgresCPU /= float64(len(sources))
	return c
}

// joinLatencies adds the histograms up.
func joinLatencies(out *results.Run, runs []*results.Run) (err error) {
	var service, response, settled []*results.Latency
	for _, run := range runs {
		service = append(service, &run.Service)
		if run.Response != nil {
			response = append(response, run.Response)
		}
		if run.Settlement != nil {
			settled = append(settled, &run.Settlement.Service)
		}
	}
	out.Service, err = addLatencies(service)
	if err != nil {
		return err
	}
	out.Response = nil
	if response != nil {
		out.Response = new(results.Latency)
		*out.Response, err = addLatencies(response)
		if err != nil {
			return err
		}
	}
	if settled != nil {
		out.Settlement.Service, err = addLatencies(settled)
	}
	return err
}

// addLatencies adds latencies up without loss, outcome by outcome.
func addLatencies(all []*results.Latency) (results.Latency, error) {
	var parts []results.Part
	whole := results.NewHistogram()
	inParts := false
	for _, latency := range all {
		histogram, err := latency.Decode()
		if err != nil {
			return results.Latency{}, err
		}
		if histogram == nil && latency.Samples > 0 {
			return results.Latency{}, errors.New("a generator has no histogram, and percentiles alone cannot be joined")
		}
		if histogram != nil {
			whole.Merge(histogram)
		}
		for i := range latency.Parts {
			inParts = true
			latencyPart := &latency.Parts[i]
			h, err := latencyPart.Decode()
			if err != nil {
				return results.Latency{}, err
			}
			same := func(part results.Part) bool {
				return part.Outcome == latencyPart.Outcome && part.Tier == latencyPart.Tier
			}
			part, known := collect.In(&parts, results.Part{Outcome: latencyPart.Outcome, Tier: latencyPart.Tier}, same)
			if !known {
				part.Histogram = results.NewHistogram()
			}
			if h != nil {
				part.Histogram.Merge(h)
			}
		}
	}
	out, err := results.LatencyOf(parts)
	if !inParts || err == nil && out.Samples != whole.Count() { // some have no parts
		out, err = whole.Latency()
	}
	for _, latency := range all {
		out.Waited = together(out.Waited, latency.Waited)
	}
	return out, err
}
