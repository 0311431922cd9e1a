package measure

import (
	"context"
	"iter"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// runOne measures one strategy once. begun is false if it ended before the measured pass.
//
// The steps are in setup.go, pass.go, atrest.go and judge.go. What has to happen around them is in around.go. crew.go
// does the same for workers, whose calls may panic or hang.
func (m *measurement) runOne(ctx context.Context, sel strategies.Selection, round *round,
	run *results.Run) (begun bool, err error) {
	pass := &pass{measurement: m, selection: sel, stream: round.stream, info: round.info, run: run}
	around := newAround(ctx, pass)
	defer guard.Caught("being looked at", &err)
	defer around.end(&err)

	err = around.settingUp(
		around.together("begin", pass.firstSite),
		around.together("open", pass.otherSites),
		pass.placement,
		pass.mark,
		pass.warmUp,
		pass.operations,
		pass.provision,
		pass.catchUp,
		pass.startJobs,
	)
	if err != nil {
		return false, err
	}
	err = around.passing(
		pass.replicate,
		around.together("start", pass.lookBefore),
		pass.decisions,
		around.evenAlone("rest", pass.lookAfter),
	)
	if err != nil {
		return true, err
	}
	pass.stop()
	return true, around.judging(
		pass.atRest,
		pass.judge,
	)
}

// pass is a measured pass and what surrounds it.
type pass struct {
	measurement *measurement
	selection   strategies.Selection
	stream      workloads.Stream
	info        workloads.Info
	run         *results.Run
	site        *site
	policy      *quota.Policy
	// lift gives the cores back.
	lift  func()
	drive *drive
	// met is when all generators came to the last step that they take together, by their common clock; zero if
	// there is one alone.
	met time.Time
	// began is when all begin, by the same clock.
	began time.Time

	// accompanied is set if another measurement of this process was under way, too.
	accompanied bool

	cores   coreWaits
	own     ownCPU
	machine machine.CPUTime
	traffic traffic
	meter   []results.Measure // as the pass began
	before  gauges
	limits  operator
	// overwritten counts the values in Redis that were changed as planned, and overwriting is why that ended.
	overwritten int64
	overwriting error
	// failed is why the strategy is asked nothing any more; nil if it is.
	failed   error
	stores   monitor.Stores
	counters counters
	keys     monitor.Keys
	// warm is the finished warm-up, and warmed how many subjects it asked about.
	warm   *drive
	warmed int64
	// facts are what is known of the pass once all has come to rest.
	facts *harness.Facts
}

// coreWaits tells what waiting for a core explains: [monitor.Cores].
type coreWaits interface {
	Explains(all iter.Seq[monitor.Moment], least int64) float64
	Record(stolen float64) *results.Waiting
	End()
}
