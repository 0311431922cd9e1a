package prove

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// scene is one run in virtual time.
type scene struct {
	// says is what happens in it.
	says     string
	subjects int
	config   sim.Config
	// judge says what is wrong in its run, and what is only told; empty texts for nothing. nil is [simulation.judge].
	judge func(*played) (wrong, told string, err error)
	// short is set if its run is judged although it is invalid: few requests say little of a limiter's clock, and most may
	// fail. If nothing is wrong then, the scene was not tried.
	short bool
}

// played is a scene that was simulated.
type played struct {
	*scene
	run *results.Run
}

// play simulates a scene, and reports whether nothing is wrong in it.
func (s *simulation) play(t *testing.T, scene *scene) bool {
	t.Helper()
	if scene.config.Second == nil { // of two windows no history is kept
		scene.config.Archive = t.TempDir()
	}
	report, invalid := sim.Run(t.Context(), scene.config)
	if invalid != nil && (!scene.short || report == nil) {
		t.Fatal(invalid)
	}
	if len(report.Runs) == 0 {
		t.Skip("not simulated: no run was made")
	}
	played := &played{scene, &report.Runs[0]}
	judge := scene.judge
	if judge == nil {
		judge = s.judge
	}
	wrong, told, err := judge(played)
	if err != nil {
		t.Log(err) // the finding stands without its first moment
	}
	switch {
	case wrong != "":
		t.Errorf("\n%sIn %s: the same in every run. Again: go test -run '^%s$'\n", wrong, played.what(), t.Name())
	case told != "":
		s.told = append(s.told, told)
	case invalid != nil:
		t.Logf("not tried: %s: %v", scene.says, invalid)
		return true
	case s.passed == nil:
		what := played.what()
		if s.options.unnamed(s.sel) {
			what += ", whose rejections are not judged, since nobody says which of the two windows they are of"
		}
		t.Logf("claimed: nothing beyond what is guaranteed in %s; %d were admitted, %d rejected", what,
			played.run.Admitted, played.run.Rejected)
	}
	if told == "" {
		s.passed = append(s.passed, scene.says)
	}
	return wrong == ""
}

// what is the scene with its extent.
func (p *played) what() string {
	instances := format.Plural(int64(p.config.Instances), "instance", "instances")
	return fmt.Sprintf("%s, %d requests of %d subjects on %s, seed %d", p.says, p.run.Issued, p.subjects, instances,
		p.config.Seed)
}

// judge holds a run to the clauses of the limiter, and to no false reject if none is about these.
func (s *simulation) judge(p *played) (wrong, told string, err error) {
	var builder strings.Builder
	for i := range p.run.Guarantee {
		clause := &p.run.Guarantee[i]
		undeclared := clause.Property == string(quota.PropertyFalseReject) && s.options.unnamed(s.sel)
		if clause.Verdict == results.Broken && !undeclared {
			builder.WriteString(p.broken(clause))
		}
	}
	declared := s.options.unnamed(s.sel) || slices.ContainsFunc(s.sel.Guarantee, func(clause quota.Clause) bool {
		return clause.Property == quota.PropertyFalseReject
	})
	if n := p.run.FalseRejects.Count; n > 0 && !declared {
		fmt.Fprintf(&builder, "FALSE-REJECT: %d of %d requests were rejected although there was room for them all the time\n",
			n, p.run.Issued)
	}
	if builder.Len() == 0 {
		return "", "", nil
	}
	first, err := p.first()
	return builder.String() + first, "", err
}

// broken says how a clause is broken.
func (p *played) broken(clause *results.Clause) string {
	policy := &p.config.Policy
	leak := &p.run.Leak
	return fmt.Sprintf("%s: %s beyond the limit of %d in the worst window, %d promised; %s in %d of %d windows of which "+
		"more was asked\n", strings.ToUpper(clause.Property), format.Units(clause.Certain, policy.Unit), policy.Limit,
		clause.Bound, format.Units(leak.Units, policy.Unit), leak.LeakedTrials, leak.Trials)
}

// first is the text of the first request that is wrong by the clock of the stores; empty if no subject by itself shows
// one.
func (p *played) first() (string, error) {
	if p.config.Archive == "" {
		return "", nil
	}
	wrong := func(verdict *oracle.Verdict) bool { return verdict.LeakUnits > 0 }
	if p.run.Leak.Units == 0 {
		wrong = func(verdict *oracle.Verdict) bool { return verdict.FalseRejects > 0 }
	}
	first, epoch, err := firstWrong(p.config.Archive, p.run, wrong)
	if err != nil || first == nil {
		return "", err
	}
	return first.text(epoch, &p.config.Policy), nil
}

// script is a stream of requests at moments that are chosen.
type script struct {
	units    int64 // of each request
	fate     workloads.Fate
	scene    int // its number among the scripts of a proof, whose subjects differ
	subjects uint32
	requests []workloads.Op
}

// subject adds one, and returns its number.
func (s *script) subject() uint32 {
	s.subjects++
	return s.subjects - 1
}

// ask has a subject ask so many times, with that time in between, and returns when the last request is due.
func (s *script) ask(subject uint32, at time.Duration, times int64, apart time.Duration) time.Duration {
	for i := range times {
		due := at + time.Duration(i)*apart
		s.requests = append(s.requests, workloads.Op{Subject: subject, Units: s.units, At: due, Fate: s.fate})
	}
	return at + time.Duration(times-1)*apart
}

// At implements [workloads.Stream].
func (s *script) At(i int64, op *workloads.Op) { *op = s.requests[i] }

// Len implements [workloads.Stream].
func (s *script) Len() int64 { return int64(len(s.requests)) }

// Name implements [workloads.Stream].
func (s *script) Name(subject uint32) string {
	return fmt.Sprintf("scene-%d-subject-%d", s.scene, subject)
}

// Subjects implements [workloads.Bounded].
func (s *script) Subjects() int { return int(s.subjects) }

// afterwards is how long a scene goes on after its last request.
const afterwards = time.Minute

// scripted is the scene of a script that begins at start.
func (s *simulation) scripted(says string, script *script, policy quota.Policy, start time.Time) *scene {
	s.scripts++
	script.scene = s.scripts
	slices.SortStableFunc(script.requests, func(a, b workloads.Op) int { return cmp.Compare(a.At, b.At) })
	last := script.requests[len(script.requests)-1].At
	trace := &workloads.TraceInfo{Rows: len(script.requests), Used: len(script.requests), First: start, Span: last}
	workload := &workloads.Meta{
		Name: "script", Doc: "requests at chosen moments", Loop: workloads.Open, Rate: 1, NeedsTrace: true,
		Options: []quota.Option{{Name: "speed", Type: "float", Default: "1", Min: "0"}},
		Make: func(workloads.Params) (workloads.Stream, workloads.Info, error) {
			return script, workloads.Info{Loop: workloads.Open, Trace: trace}, nil
		},
	}
	config := s.config(policy, workload)
	config.Start = start
	config.Duration = last + afterwards
	return &scene{says: says, subjects: int(script.subjects), config: config, short: true}
}

// config is what all scenes have in common.
func (s *simulation) config(policy quota.Policy, workload *workloads.Meta) sim.Config {
	return sim.Config{Start: began, Every: -1, Plan: harness.Plan{
		Policy: policy, Traffic: harness.Traffic{Workload: workload}, Strategies: s.selections(), Seed: s.options.Seed,
		Instances: s.instances,
	}}
}
