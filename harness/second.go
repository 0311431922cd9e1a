package harness

import (
	"errors"
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// secondFrom is the number in a history of the first holder of a second quota.
const secondFrom = 1 << 31

// completeSecond names the holders of the second quota, and reports what does not go with it.
func (p *Plan) completeSecond() error {
	switch {
	case p.Second == nil:
		return nil
	case p.Routes < 0 || p.Routes > maxRoutes:
		return fmt.Errorf("%d routes: give 0 to %d", p.Routes, maxRoutes)
	case p.Second.Limit < 1 || p.Second.Limit > quota.MaxLimit:
		return fmt.Errorf("a second limit of %d: give 1 to %d", p.Second.Limit, int64(quota.MaxLimit))
	case p.Second.Name == p.Policy.Name:
		return fmt.Errorf("both policies are %s: give two different ones", p.Second.Name)
	case p.Workload.GivesBack:
		return errors.New("requests of two quotas are not given back: give another workload, or no second quota")
	case p.Stream.Speed() > 0 && p.Policy.Window.Kind == quota.Standing:
		return errors.New("a quota of what is held has no recorded time that a second one could follow: " +
			"give the second quota first, or no second quota")
	case p.Archive != "" || p.Peers != nil:
		return errors.New("a run with two quotas is neither kept as a history nor shared by several processes: " +
			"leave that, or the second quota, out")
	}
	p.routes = make([]quota.Subject, p.Routes)
	for i := range p.routes {
		p.routes[i] = quota.Subject(fmt.Sprintf("route-%d", i))
	}
	return nil
}

// route is the number of the second quota's holder in request i.
func (p *Plan) route(i int64) uint32 {
	return uint32(seed.Below(seed.At(seed.Stream(p.Seed, seed.Holders), uint64(i)), uint64(len(p.routes))))
}

// holder is the number in a history of the second quota's holder in request i of a subject.
func (p *Plan) holder(subject uint32, i int64) uint32 {
	if p.Routes == 0 {
		return secondFrom + subject
	}
	return secondFrom + p.route(i)
}

// secondBeside is the second quota with its windows in the recorded time that those of the first follow, if there is
// one.
func (p *Plan) secondBeside(first *quota.Policy) *quota.Policy {
	if p.Stream.Speed() == 0 {
		return p.Second
	}
	second := *p.Second
	second.Window.Timeline = first.Window.Timeline
	return &second
}

// ChargeSecond has request i charged to the second quota as well, if the plan has one.
func (p *Plan) ChargeSecond(req *quota.Request, i int64) {
	if p == nil || p.Second == nil {
		return
	}
	req.Second.Policy = p.secondBeside(req.Policy)
	req.Second.Subject = req.Subject
	if p.Routes > 0 {
		req.Second.Subject = p.routes[p.route(i)]
	}
}

// Record records what request i was told, which was granted that many of its units: the event, one more about what an
// admitted request was not granted, and one about its second quota.
func (p *Plan) Record(history *oracle.History, worker int, event oracle.Event, granted, i int64) {
	if event.Outcome == oracle.Admitted && granted < event.Units {
		short := event
		short.Units = event.Units - granted
		short.Outcome = oracle.Short
		history.Append(worker, short)
		event.Units = granted
	}
	history.Append(worker, event)
	if p == nil || p.Second == nil {
		return
	}
	switch event.Outcome {
	case oracle.Elsewhere:
		event.Outcome = oracle.Rejected
	case oracle.Rejected, oracle.RejectedDegraded:
		event.Outcome = oracle.Elsewhere
	}
	event.Subject = p.holder(event.Subject, i)
	history.Append(worker, event)
}

// rejection is a request that was rejected. The number of its subject is 0 if several subjects have one second quota.
type rejection struct {
	subject     uint32
	call, reply int64
	instance    uint8
}

// occupied are the rejections during which the second quota was full for a moment at least, and whether it may have had
// room at another.
type occupied map[rejection]bool

func (j *judgement) rejection(event *oracle.Event) rejection {
	r := rejection{call: event.Call, reply: event.Reply, instance: event.Instance}
	if j.Plan.Routes == 0 {
		r.subject = event.Subject % secondFrom
	}
	return r
}

// judgeBoth judges the first quota, which visitors see, and the second one, if there is one. A rejection is wrong if
// both had room for it, and counts with the first.
func (j *judgement) judgeBoth(judge func(oracle.Config, ...oracle.Visitor) (oracle.Verdict, error),
	visit ...oracle.Visitor) (first, second oracle.Verdict, err error) {
	config := j.cfg
	if j.Plan.Second != nil {
		full := occupied{}
		second, err = judge(j.secondConfig(full))
		if err != nil {
			return first, second, err
		}
		config.Rejected = func(event *oracle.Event, always, once bool) (wrong, possiblyWrong bool) {
			roomAtTimes, full := full[j.rejection(event)]
			return always && !full, once && (roomAtTimes || !full)
		}
	}
	first, err = judge(config, visit...)
	return first, second, err
}

// secondConfig is what the history is judged against for the second quota. It notes rejections while that is full.
func (j *judgement) secondConfig(full occupied) oracle.Config {
	policy := j.secondPolicy()
	config := oracle.Config{Window: policy.Window, Limit: policy.Limit, Epoch: j.Epoch, Brief: true, From: secondFrom,
		Span: j.cfg.Span}
	config.Rejected = func(event *oracle.Event, always, once bool) (wrong, possiblyWrong bool) {
		if !always {
			key := j.rejection(event)
			before, known := full[key]
			full[key] = once && (before || !known)
		}
		return false, false
	}
	return config
}

// secondPolicy is the second quota as it was in the run.
func (j *judgement) secondPolicy() *quota.Policy { return j.Plan.secondBeside(j.Policy) }

// second adds what was found of the second quota to the run: the leak is that of both, the clauses about leaks are held
// against each, and a note tells them apart.
func (j *judgement) second() {
	if j.Plan.Second == nil {
		return
	}
	policy := j.secondPolicy()
	facts := *j.Facts
	facts.Policy = policy
	facts.Initial = nil
	facts.LimitChanges = nil
	run := results.Run{Rates: results.Rates{ElapsedNS: j.run.ElapsedNS}}
	o := judgement{Facts: &facts, run: &run, verdict: j.ofSecond.stores}
	o.guarantee(j.ofSecond.own, nil, nil)
	correctness(&run, o.verdict, policy)
	first := j.run.Leak
	second := run.Leak
	both := j.verdict.With(o.verdict)
	correctness(j.run, &both, j.Policy)
	byTier(j.run, &both, j.Tiers)
	if n := float64(both.Crossings); n > 0 {
		j.run.Leak.PctOfLimit = (first.PctOfLimit*float64(first.Trials) + second.PctOfLimit*float64(second.Trials)) / n
	}
	whose := "of the second window"
	if j.Plan.Routes > 0 {
		whose = "of the routes"
	}
	for _, clause := range run.Guarantee {
		if clause.Property == string(quota.PropertyFalseReject) { // it is about both, and judged with the first
			continue
		}
		clause.Formula += ", " + whose
		j.run.Guarantee = append(j.run.Guarantee, clause)
	}
	of := func(leak int64, p *quota.Policy) string {
		return fmt.Sprintf("of %s, the leak is %s", p.Name, format.Units(leak, p.Unit))
	}
	j.note("second-quota", "the leak is that of both quotas, and a rejection is false if both had room: "+
		of(j.verdict.LeakUnits, j.Policy)+"; "+whose+", "+of(o.verdict.LeakUnits, policy))
}
