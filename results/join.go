package results

import (
	"errors"
	"math"
	"slices"

	"github.com/quotabench/quotabench/internal/groups"
)

// join makes one run of the shards of one round, which have no subject in common.
// Throughput and reference are sums, since shards run at the same time. What only one
// process can tell of itself is left out: its placement, what it waited for, and the
// stalls behind its percentiles.
func join(shards []*Run) (Run, error) {
	first := shards[0]
	out := first.emptied(len(shards))
	s := summariseGroup("", shards, shards, nil)
	p := &out.Params
	for _, r := range shards {
		p.Subjects += r.Params.Subjects
		p.Workers += r.Params.Workers
		p.Instances += r.Params.Instances
		p.RatePerS += r.Params.RatePerS
		out.DidNotReturn += r.DidNotReturn
		out.ElapsedNS = max(out.ElapsedNS, r.ElapsedNS)
		out.ThroughputPerS += r.ThroughputPerS
		out.ReferencePerS += r.ReferencePerS
		if math.Abs(r.ReferenceChange-1) > math.Abs(out.ReferenceChange-1) || out.ReferenceChange == 0 {
			out.ReferenceChange = r.ReferenceChange
		}
		out.Partial = out.Partial || r.Partial
		out.Lateness = together(out.Lateness, r.Lateness)
	}
	if slices.ContainsFunc(shards, func(r *Run) bool { return r.ReferencePerS == 0 }) {
		out.ReferencePerS, out.ReferenceChange = 0, 0
	}
	out.Audit = s.Audit
	out.judged(shards)
	out.Cost = joinedCost(shards, out.Issued)
	out.Meter, out.Stored, out.PoolWait = joinedMeter(shards), joinedStored(shards), joinedPoolWaits(shards)
	if err := out.joinLatencies(shards); err != nil {
		return Run{}, err
	}
	own := paced(shards)
	if len(own) == 0 {
		return out, nil
	}
	if len(own) < len(shards) {
		return Run{}, errors.New("one shard has an open loop next to the closed one, and another has none")
	}
	beside, err := join(own)
	out.Paced = &beside
	return out, err
}

// emptied is a run like r, of so many shards, without what join and judged find.
func (r *Run) emptied(shards int) Run {
	out := *r
	p := &out.Params
	p.Shard, p.Generator, p.Shards = "", "", shards
	p.Subjects, p.Workers, p.Instances = 0, 0, 0
	out.DidNotReturn, out.Partial = 0, false
	p.RatePerS, out.ThroughputPerS, out.ElapsedNS = 0, 0, 0
	out.Reference, out.ReferencePerS, out.ReferenceChange = nil, 0, 0
	out.Placement, out.Waiting, out.Lateness = nil, nil, nil
	out.OverTime, out.Outages, out.Trace = nil, nil, ""
	out.Jobs = nil
	return out
}

// judged sets what the verdicts of the shards say together. Whether they are valid
// does not matter here: the joined audit says so.
func (r *Run) judged(shards []*Run) {
	all := Summary{Params: shards[0].Params}
	all.correctness(shards)
	r.Issued, r.Admitted, r.Rejected = all.Issued, all.Admitted, all.Rejected
	r.Errors, r.ErrorKinds, r.FirstError = all.Errors, all.ErrorKinds, all.FirstError
	r.Degraded, r.DegradedAdmitted, r.RecoveredNS = all.Degraded, 0, 0
	r.Leak = all.Leak.Leak
	r.FalseRejects = all.FalseRejects
	r.Rolling = all.Rolling
	r.Drift = all.Drift
	r.Guarantee = all.Guarantee
	r.Record, r.NotPromised = all.Record, all.NotPromised
	for _, x := range shards {
		r.Leak.MedianUnits = max(r.Leak.MedianUnits, x.Leak.MedianUnits)
		r.DegradedAdmitted += x.DegradedAdmitted
	}
	if x := all.Settled; x != nil {
		r.Settlement = &Settlement{}
		add(r.Settlement, x)
	}
}

// joinLatencies adds the histograms up.
func (r *Run) joinLatencies(shards []*Run) (err error) {
	var service, response, settled []*Latency
	for _, x := range shards {
		service = append(service, &x.Service)
		if x.Response != nil {
			response = append(response, x.Response)
		}
		if x.Settlement != nil {
			settled = append(settled, &x.Settlement.Service)
		}
	}
	r.Service, err = addLatencies(service)
	if r.Response = nil; response != nil && err == nil {
		r.Response = new(Latency)
		*r.Response, err = addLatencies(response)
	}
	if settled != nil && err == nil {
		r.Settlement.Service, err = addLatencies(settled)
	}
	return err
}

// addLatencies adds latencies up without loss, part by part.
func addLatencies(all []*Latency) (Latency, error) {
	var parts []Part
	whole := NewHistogram()
	inParts := false
	for _, l := range all {
		h, err := l.Decode()
		if err != nil {
			return Latency{}, err
		}
		if h == nil && l.Samples > 0 {
			return Latency{}, errors.New("a shard has no histogram, and percentiles alone cannot be joined")
		}
		if h != nil {
			whole.Merge(h)
		}
		for i := range l.Parts {
			inParts = true
			p := &l.Parts[i]
			h, err := p.Decode()
			if err != nil {
				return Latency{}, err
			}
			same := func(x Part) bool { return x.Outcome == p.Outcome && x.Tier == p.Tier }
			part, known := groups.In(&parts, Part{Outcome: p.Outcome, Tier: p.Tier}, same)
			if !known {
				part.Histogram = NewHistogram()
			}
			if h != nil {
				part.Histogram.Merge(h)
			}
		}
	}
	out, err := LatencyOf(parts)
	if !inParts || err == nil && out.Samples != whole.Count() { // some have no parts
		out, err = whole.Latency()
	}
	for _, l := range all {
		out.Waited = together(out.Waited, l.Waited)
	}
	return out, err
}

// joinedCost is the cost per decision of all shards, and the first one's probe.
func joinedCost(shards []*Run, issued int64) Cost {
	var c Cost
	for _, r := range shards {
		share := float64(r.Issued) / float64(max(issued, 1))
		from := perDecision(&r.Cost)
		for k, to := range perDecision(&c) {
			*to += share * *from[k]
		}
		c.KeysAtEnd += r.Cost.KeysAtEnd
		c.KeysWithoutTTL += r.Cost.KeysWithoutTTL
		if c.Probe == nil {
			c.Probe = r.Cost.Probe
		}
	}
	return c
}

func joinedMeter(shards []*Run) (out []Measure) {
	for _, r := range shards {
		for _, m := range r.Meter {
			whole, known := groups.In(&out, m, func(x Measure) bool { return x.Name == m.Name })
			switch {
			case m.Kind == "most":
				whole.Value = max(whole.Value, m.Value)
			case known:
				whole.Value += m.Value
			}
		}
	}
	return out
}

func joinedStored(shards []*Run) (out []Stored) {
	for _, r := range shards {
		for _, k := range r.Stored {
			k.OverTime = nil // the shards' moments differ
			if x, known := groups.In(&out, k, func(x Stored) bool { return x.Store == k.Store }); known {
				*x = NewStored(k.Store, x.Subjects+k.Subjects, x.Entries+k.Entries, x.Bytes+k.Bytes, nil)
			}
		}
	}
	return out
}
