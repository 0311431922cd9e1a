package measure

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// maxRounds is the most rounds of a job that a pass keeps the times of.
const maxRounds = 1 << 16

// roundTimes are when rounds of jobs of one name ran, on whichever instance, by the clock of the timebase.
type roundTimes struct {
	mu   sync.Mutex
	list []roundTime
}

type roundTime struct{ from, to int64 }

func (r *roundTimes) add(from, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRounds {
		r.list = append(r.list, roundTime{from, to})
	}
}

// jobLatency tells the requests whose call overlaps a round of a job from the others.
type jobLatency struct {
	rounds         []roundTime // that overlap the pass, since its epoch; those that overlap each other are one
	out            results.JobLatency
	during, others *results.Histogram
}

// newJobLatency is nil if no round of the job overlaps a pass of that length that began at the epoch.
func newJobLatency(name string, r *roundTimes, epoch, length int64) *jobLatency {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &jobLatency{out: results.JobLatency{Job: name}}
	sorted := slices.Clone(r.list)
	slices.SortFunc(sorted, func(a, b roundTime) int { return cmp.Compare(a.from, b.from) })
	for _, t := range sorted {
		from, to := t.from-epoch, t.to-epoch
		if to < 0 || from > length {
			continue
		}
		j.out.Rounds++
		j.out.LongestNS = max(j.out.LongestNS, to-from)
		if n := len(j.rounds); n > 0 && from <= j.rounds[n-1].to {
			j.rounds[n-1].to = max(to, j.rounds[n-1].to)
			continue
		}
		j.rounds = append(j.rounds, roundTime{from, to})
	}
	if j.rounds == nil {
		return nil
	}
	j.during, j.others = results.NewHistogram(), results.NewHistogram()
	return j
}

// jobLatencies are those of all jobs that ran during the pass.
func (p *pass) jobLatencies() (out []*jobLatency) {
	times := p.s.jobs.times
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if j := newJobLatency(name, times[name], p.d.epoch, p.run.ElapsedNS); j != nil {
			out = append(out, j)
		}
	}
	return out
}

func (j *jobLatency) finish() results.JobLatency {
	j.out.During, j.out.Others = j.during.Distribution(), j.others.Distribution()
	return j.out
}

func (j *jobLatency) take(e *oracle.Event) {
	// Rounds are apart: if the first that ended after the call began too late, all others did.
	k, _ := slices.BinarySearchFunc(j.rounds, e.Call, func(t roundTime, call int64) int { return cmp.Compare(t.to, call) })
	switch {
	case e.Outcome == oracle.Short:
	case k < len(j.rounds) && j.rounds[k].from <= e.Reply:
		j.during.Record(e.Reply - e.Call)
	default:
		j.others.Record(e.Reply - e.Call)
	}
}
