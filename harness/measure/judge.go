package measure

import (
	"context"
	"errors"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
)

// judge turns a pass at rest into its figures.
func (p *pass) judge(ctx context.Context) error {
	jumps, err := p.counters.jumps(p, p.facts)
	if err != nil {
		return err
	}
	p.facts.Noticed = append(p.facts.Noticed, jumps...)
	views := p.newViews()
	judged, err := p.verdict(ctx, views)
	if !judged {
		return err
	}
	p.addViews(views)
	p.audit()
	p.auditStrangers()
	p.compareWithRuns(views)
	return nil
}

// verdict has the history judged. judged is false if that was given up, or failed.
func (p *pass) verdict(ctx context.Context, views *views) (judged bool, err error) {
	run := p.run
	elapsed := run.ElapsedNS
	_, err = harness.Judge(ctx, run, p.facts, eachTake(views.looks()...))
	givenUp := errors.Is(err, harness.ErrNotJudged)
	switch {
	case givenUp:
		p.drive.abandoned = true
		elapsed = max(elapsed, 1)
	case err != nil:
		return false, err
	}
	if elapsed > 0 {
		run.ThroughputPerS = float64(run.Issued) / time.Duration(elapsed).Seconds()
	}
	return !givenUp, nil
}

// views are what the judgement shows each take to, in one pass over the history.
type views struct {
	services *slowest
	asked    askedHash
	thirds   *thirds
	overTime *overTime
	jobs     []*jobLatency
}

func (p *pass) newViews() *views {
	return &views{
		services: newSlowest(p.run.ElapsedNS),
		thirds:   thirdsOf(p.run),
		overTime: overTimeOf(p.run),
		jobs:     p.jobLatencies(),
	}
}

func (v *views) looks() []func(*oracle.Event) {
	looks := []func(*oracle.Event){v.services.take, v.asked.take, v.thirds.take, v.overTime.take}
	for _, job := range v.jobs {
		looks = append(looks, job.take)
	}
	return looks
}

// addViews adds to the run what the history showed.
func (p *pass) addViews(views *views) {
	run := p.run
	p.tails(views.services)
	run.OverTime = views.overTime.out
	for _, job := range views.jobs {
		run.Jobs = append(run.Jobs, job.finish())
	}
}

// compareWithRuns has the audit compare the run with others.
func (p *pass) compareWithRuns(views *views) {
	across := p.measurement.across
	across.sameRequests(p.run, views.asked.hash)
	across.freshStream(p.run, p.measurement.random(p.drive.stream))
	if !p.drive.lateness.open {
		across.stationary(p.run, views.thirds)
	}
}
