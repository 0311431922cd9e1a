package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/quotabench/quotabench/internal/kit/collect"
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

// joinRuns makes one run of those of generators, which had the subjects in common. Their verdicts say nothing together, so the
// run has none: it is undecided until all histories are judged, see [decide].
func joinRuns(sources []source) (results.Run, error) {
	audit := results.Audit{Valid: true, Reasons: []results.Reason{}}
	var timed []*results.Run
	for i := range sources {
		s := &sources[i]
		add := func(code, discards, detail string) {
			audit.Discard(code, discards, "generator "+s.name+": "+detail)
		}
		for _, r := range s.run.Audit.Reasons {
			discards := r.Discards
			if discards == results.DiscardsRound {
				discards = results.DiscardsNothing // of all others they count
			}
			add(r.Code, discards, r.Detail)
		}
		if !s.run.Audit.Planned() {
			add("source-untimed", results.DiscardsNothing, "its latencies are left out: it did not go as planned")
			continue
		}
		if share := s.others(sources); share > othersLimit {
			add("machine-busy", results.Disturbs, fmt.Sprintf("other programs used %.0f %% of the processor time during the run", 100*share))
		}
		timed = append(timed, s.run)
	}
	out := added(sources)
	if len(timed) == 0 {
		audit.Discard("sources-untimed", results.DiscardsRound, "no generator went as planned")
		for i := range sources {
			timed = append(timed, sources[i].run)
		}
	}
	audit.Discard(codeUndecided, results.DiscardsCorrectness, "the histories of the generators were not judged together")
	out.Audit = audit
	return out, joinLatencies(&out, timed)
}

// others is the share of the processor time of a generator's machine that programs used which are
// no generator of the run: what other generators used is the run's own load.
func (s *source) others(all []source) float64 {
	share := s.run.OthersShare
	for i := range all {
		o := &all[i]
		if o.run != s.run && o.host == s.host {
			used := o.run.Cost.ClientCPU * float64(o.run.Issued)
			share -= used / float64(max(s.run.ElapsedNS, 1)) / float64(max(s.host.CPUs, 1))
		}
	}
	return share
}

// added is the sum of the runs of all generators. What only one process can tell of itself is left out: its placement, what it
// waited for, and the stalls behind its percentiles.
func added(sources []source) results.Run {
	out := emptied(sources[0].run)
	p := &out.Params
	p.Sources = len(sources)
	for i := range sources {
		r := sources[i].run
		p.Workers += r.Params.Workers
		p.Instances += r.Params.Instances
		out.DidNotReturn += r.DidNotReturn
		out.ElapsedNS = max(out.ElapsedNS, r.ElapsedNS)
		out.Partial = out.Partial || r.Partial
		out.Lateness = together(out.Lateness, r.Lateness)
		out.Issued += r.Issued
		out.Admitted += r.Admitted
		out.Rejected += r.Rejected
		out.Errors += r.Errors
		out.ErrorKinds = together(out.ErrorKinds, r.ErrorKinds)
		out.FirstError = cmp.Or(out.FirstError, r.FirstError)
		out.Degraded += r.Degraded
		out.DegradedAdmitted += r.DegradedAdmitted
		out.RecoveredNS = max(out.RecoveredNS, r.RecoveredNS)
		out.Settlement = together(out.Settlement, r.Settlement)
		out.Guarantee = clauses(out.Guarantee, r.Guarantee)
		out.Record = clauses(out.Record, r.Record)
		out.NotPromised = collect.Union(out.NotPromised, r.NotPromised...)
		addMeter(&out, r)
		addStored(&out, r)
		addWaits(&out, r)
	}
	out.Cost = cost(sources, out.Issued)
	return out
}

// emptied is a run like r without what follows from the runs of all generators.
func emptied(r *results.Run) results.Run {
	out := *r
	out.Params.Workers = 0
	out.Params.Instances = 0
	out.DidNotReturn = 0
	out.Partial = false
	out.ThroughputPerS = 0
	out.ElapsedNS = 0
	out.Reference = nil
	out.ReferencePerS = 0
	out.ReferenceChange = 0
	out.Placement = nil
	out.Waiting = nil
	out.Lateness = nil
	out.OverTime = nil
	out.Outages = nil
	out.Trace = ""
	out.Jobs = nil
	out.OthersShare = 0
	out.Issued = 0
	out.Admitted = 0
	out.Rejected = 0
	out.Errors = 0
	out.ErrorKinds = nil
	out.FirstError = ""
	out.Degraded = 0
	out.DegradedAdmitted = 0
	out.RecoveredNS = 0
	out.Settlement = nil
	out.Guarantee = []results.Clause{}
	out.Record = nil
	out.NotPromised = nil
	out.Meter = nil
	out.Stored = nil
	out.PoolWait = nil
	out.Leak = results.Leak{}
	out.LeakTiers = nil
	out.FalseRejects = results.FalseRejects{}
	out.Drift = nil
	out.Rolling = nil
	return out
}

// together is the sum of two parts of records; nil if there is neither.
func together[T any](a, b *T) *T {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a
	results.Add(&sum, b)
	return &sum
}

// clauses are those of a run and what another adds to them. None has a verdict yet.
func clauses(all, more []results.Clause) []results.Clause {
	for _, c := range more {
		if slices.IndexFunc(all, func(x results.Clause) bool { return sameClause(&x, &c) }) < 0 {
			all = append(all, c)
		}
	}
	return all
}

func sameClause(x, y *results.Clause) bool {
	return x.Property == y.Property && x.Formula == y.Formula && x.Source == y.Source
}

func addMeter(out, r *results.Run) {
	for _, m := range r.Meter {
		whole, known := collect.In(&out.Meter, m, func(x results.Measure) bool { return x.Name == m.Name })
		switch {
		case m.Kind == "most":
			whole.Value = max(whole.Value, m.Value)
		case known:
			whole.Value += m.Value
		}
	}
}

func addStored(out, r *results.Run) {
	for _, k := range r.Stored {
		k.OverTime = nil // the moments of generators differ
		x, known := collect.In(&out.Stored, k, func(x results.Stored) bool { return x.Store == k.Store })
		if known {
			*x = results.NewStored(k.Store, x.Subjects+k.Subjects, x.Entries+k.Entries, x.Bytes+k.Bytes, nil)
		}
	}
}

func addWaits(out, r *results.Run) {
	for _, w := range r.PoolWait {
		whole, known := collect.In(&out.PoolWait, w, func(x results.PoolWait) bool { return x.Store == w.Store })
		if known {
			results.Add(whole, &w)
		}
	}
}

// cost is the cost per decision of all generators, and the first one's probe. Each saw what the servers did for all.
func cost(sources []source, issued int64) results.Cost {
	var c results.Cost
	sum := reflect.ValueOf(&c).Elem()
	for i := range sources {
		r := sources[i].run
		share := float64(r.Issued) / float64(max(issued, 1))
		own := reflect.ValueOf(r.Cost)
		for _, f := range reflect.VisibleFields(sum.Type()) {
			if f.Type.Kind() == reflect.Float64 {
				to := sum.FieldByIndex(f.Index)
				to.SetFloat(to.Float() + share*own.FieldByIndex(f.Index).Float())
			}
		}
		c.KeysAtEnd += r.Cost.KeysAtEnd
		c.KeysWithoutTTL += r.Cost.KeysWithoutTTL
		if c.Probe == nil {
			c.Probe = r.Cost.Probe
		}
	}
	c.RedisCPU /= float64(len(sources))
	c.PostgresCPU /= float64(len(sources))
	return c
}

// joinLatencies adds the histograms up.
func joinLatencies(out *results.Run, runs []*results.Run) (err error) {
	var service, response, settled []*results.Latency
	for _, x := range runs {
		service = append(service, &x.Service)
		if x.Response != nil {
			response = append(response, x.Response)
		}
		if x.Settlement != nil {
			settled = append(settled, &x.Settlement.Service)
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
	for _, l := range all {
		h, err := l.Decode()
		if err != nil {
			return results.Latency{}, err
		}
		if h == nil && l.Samples > 0 {
			return results.Latency{}, errors.New("a generator has no histogram, and percentiles alone cannot be joined")
		}
		if h != nil {
			whole.Merge(h)
		}
		for i := range l.Parts {
			inParts = true
			p := &l.Parts[i]
			h, err := p.Decode()
			if err != nil {
				return results.Latency{}, err
			}
			same := func(x results.Part) bool { return x.Outcome == p.Outcome && x.Tier == p.Tier }
			part, known := collect.In(&parts, results.Part{Outcome: p.Outcome, Tier: p.Tier}, same)
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
	for _, l := range all {
		out.Waited = together(out.Waited, l.Waited)
	}
	return out, err
}
