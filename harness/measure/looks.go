package measure

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
)

// eachTake shows each take to all that look at takes.
func eachTake(looks ...func(*oracle.Event)) func(events []oracle.Event) {
	return func(events []oracle.Event) {
		for i := range events {
			if event := &events[i]; event.Kind == oracle.Take {
				for _, look := range looks {
					look(event)
				}
			}
		}
	}
}

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
	rounds         []roundTime // that overlap the pass, since its epoch; overlapping ones are joined
	out            results.JobLatency
	during, others *results.Histogram
}

// newJobLatency is nil if no round of the job overlaps a pass of that length that began at the epoch.
func newJobLatency(name string, times *roundTimes, epoch, length int64) *jobLatency {
	times.mu.Lock()
	defer times.mu.Unlock()
	latency := &jobLatency{out: results.JobLatency{Job: name}}
	sorted := slices.Clone(times.list)
	slices.SortFunc(sorted, func(a, b roundTime) int { return cmp.Compare(a.from, b.from) })
	for _, t := range sorted {
		from := t.from - epoch
		to := t.to - epoch
		if to < 0 || from > length {
			continue
		}
		latency.out.Rounds++
		latency.out.LongestNS = max(latency.out.LongestNS, to-from)
		if n := len(latency.rounds); n > 0 && from <= latency.rounds[n-1].to {
			latency.rounds[n-1].to = max(to, latency.rounds[n-1].to)
			continue
		}
		latency.rounds = append(latency.rounds, roundTime{from, to})
	}
	if latency.rounds == nil {
		return nil
	}
	latency.during = results.NewHistogram()
	latency.others = results.NewHistogram()
	return latency
}

// jobLatencies are those of all jobs that ran during the pass.
func (p *pass) jobLatencies() (out []*jobLatency) {
	times := p.site.jobs.times
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if j := newJobLatency(name, times[name], p.drive.epoch, p.run.ElapsedNS); j != nil {
			out = append(out, j)
		}
	}
	return out
}

func (j *jobLatency) finish() results.JobLatency {
	j.out.During = j.during.Distribution()
	j.out.Others = j.others.Distribution()
	return j.out
}

func (j *jobLatency) take(event *oracle.Event) {
	// Rounds are apart: if the first that ended after the call began too late, all others did.
	k, _ := slices.BinarySearchFunc(j.rounds, event.Call, func(t roundTime, call int64) int {
		return cmp.Compare(t.to, call)
	})
	switch {
	case event.Outcome == oracle.Short:
	case k < len(j.rounds) && j.rounds[k].from <= event.Reply:
		j.during.Record(event.Reply - event.Call)
	default:
		j.others.Record(event.Reply - event.Call)
	}
}

// overTimeSlices is into how many slices of one length a run is cut.
const overTimeSlices = 60

// overTime counts decisions by when they were made.
type overTime struct{ out *results.OverTime }

// overTimeOf is empty for a run that is too short to be cut into slices.
func overTimeOf(run *results.Run) *overTime {
	if run.ElapsedNS < overTimeSlices {
		return &overTime{}
	}
	counts := func() []int64 { return make([]int64, overTimeSlices) }
	// Rounded up, so that the last answer lies in the last slice.
	length := (run.ElapsedNS + overTimeSlices - 1) / overTimeSlices
	return &overTime{&results.OverTime{SliceNS: length, Admitted: counts(), Rejected: counts(), Errors: counts()}}
}

func (o *overTime) take(event *oracle.Event) {
	if o.out == nil {
		return
	}
	// An answer may come after the pass is over.
	slice := min(max(event.Reply/o.out.SliceNS, 0), overTimeSlices-1)
	switch event.Outcome {
	case oracle.Admitted:
		o.out.Admitted[slice]++
	case oracle.Rejected, oracle.RejectedDegraded, oracle.Elsewhere:
		o.out.Rejected[slice]++
	case oracle.Failed:
		o.out.Errors[slice]++
	}
}

// take notes the service time.
func (s *slowest) take(event *oracle.Event) { s.record(event.Call, event.Reply-event.Call) }

// tails looks at what is behind the high percentiles: how many separate events, and
// whether threads waited for a core meanwhile. service has the service times; the moments
// of the response times of an open loop were kept as they came.
func (p *pass) tails(service *slowest) {
	run := p.run
	p.look(&run.Service, service, "service")
	if run.Response != nil {
		p.look(run.Response, p.drive.slow, "response")
	}
	run.Waiting = p.cores.Record(p.machine.Share())
}

func (p *pass) look(latency *results.Latency, s *slowest, name string) {
	latency.StallsP99 = s.stalls(latency.P99)
	latency.StallsP999 = s.stalls(latency.P999)
	share := func(ns int64) float64 { return s.explained(p.cores, p.drive.epoch, ns, latency.P50) }
	latency.Waited = &results.Waited{P90: share(latency.P90), P99: share(latency.P99), P999: share(latency.P999),
		P9999: share(latency.P9999)}
	var waited []string
	for i, q := range []float64{0.9, 0.99, 0.999, 0.9999} {
		if latency.WaitedForCore(q) {
			waited = append(waited, []string{"p90", "p99", "p99.9", "p99.99"}[i])
		}
	}
	if len(waited) > 0 {
		p.discard("waited-for-core", codes.DiscardsNothing,
			"%s of the %s time may be waiting for a core: in most of the moments behind them a thread of this program or of "+
				"a server started here was ready to run and had no core, for long enough to explain them",
			strings.Join(waited, ", "), name)
	}
}
