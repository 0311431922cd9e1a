package harness

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
	"github.com/quotabench/quotabench/workloads"
)

func selected(m strategies.Meta) strategies.Selection { return strategies.Selection{Meta: &m} }

// TestComplete tries each bound of a plan on both of its sides.
func TestComplete(t *testing.T) {
	ok := Plan{
		Strategies: []strategies.Selection{selected(strategies.Meta{Name: "a"})},
		Traffic: Traffic{Workload: &workloads.Meta{},
			Stream: workloads.Params{Options: quota.Options{"speed": fmt.Sprint(1e6)}}, Arrivals: "constant", Duration: 1},
		Policy: quota.Policy{Limit: 1}, Workers: 8,
		Instances:    255,
		Surroundings: Surroundings{Trouble: trouble.MustParse("redis:away")},
	}
	if err := ok.Complete(8); err != nil || ok.HistoryLimit != 1<<27 || ok.Life != 15*time.Minute || ok.Instances != 255 {
		t.Fatalf("%+v: %v", ok, err)
	}
	one := Plan{Strategies: ok.Strategies, Traffic: Traffic{Workload: ok.Workload, Arrivals: "poisson"},
		Policy: ok.Policy, Workers: 1,
		Keeping: Keeping{HistoryLimit: 5}, Callers: Callers{Life: 7}}
	if err := one.Complete(1); err != nil || one.Instances != 1 || one.HistoryLimit != 5 || one.Life != 7 {
		t.Fatalf("%+v: %v", one, err)
	}
	for want, spoil := range map[string]func(p *Plan){
		"no strategy to run":                    func(p *Plan) { p.Strategies = nil },
		"no workload to run":                    func(p *Plan) { p.Workload = nil },
		"a limit of 0":                          func(p *Plan) { p.Policy.Limit = 0 },
		"0 workers: give 1 to 8":                func(p *Plan) { p.Workers = 0 },
		"9 workers: give 1 to 8":                func(p *Plan) { p.Workers = 9 },
		"-1 instances":                          func(p *Plan) { p.Instances = -1 },
		"256 instances: give 1 to 255":          func(p *Plan) { p.Instances = 256 },
		"requests, duration":                    func(p *Plan) { p.Requests = -1 },
		"requests, duration, ":                  func(p *Plan) { p.Duration = -1 },
		"requests, duration, rate":              func(p *Plan) { p.Load = OpenAt(-1) },
		"requests, duration, rate, life":        func(p *Plan) { p.Life = -1 },
		"requests, duration, rate, life and":    func(p *Plan) { p.HistoryLimit = -1 },
		"arrivals \"often\": one of poisson, c": func(p *Plan) { p.Arrivals = "often" },
		"a speed of 1.000001e+06":               func(p *Plan) { p.Stream.Set("speed", 1_000_001) },
	} {
		p := ok
		spoil(&p)
		if err := p.Complete(8); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCannotRun says why not, or that nothing is in the way.
func TestCannotRun(t *testing.T) {
	kinds := []quota.Kind{quota.Standing}
	for _, c := range []struct {
		meta     strategies.Meta
		plan     Plan
		crosses  bool
		want     string
		workload workloads.Meta
	}{
		{meta: strategies.Meta{Kinds: kinds}},
		{meta: strategies.Meta{Kinds: kinds,
			Excluded: map[strategies.Mode]string{strategies.ModeExplore: "it sleeps"}}},
		{meta: strategies.Meta{Kinds: kinds,
			Excluded: map[strategies.Mode]string{strategies.ModeSimulate: "it sleeps"}},
			want: "it cannot be simulated: it sleeps"},
		{meta: strategies.Meta{Name: "a", Kinds: []quota.Kind{quota.Fixed}},
			want: "policy  has a standing window; a serves fixed"},
		{meta: strategies.Meta{Kinds: kinds}, workload: workloads.Meta{Name: "uploads", GivesBack: true},
			want: "it cannot take units back, which the workload uploads asks for: give --workload uploads:hold=0s"},
		{meta: strategies.Meta{Kinds: kinds}, workload: workloads.Meta{GivesBack: true},
			plan: Plan{Traffic: Traffic{Stream: workloads.Params{Options: quota.Options{"hold": "0s"}}}}},
		{meta: strategies.Meta{Kinds: kinds, GivesBack: true},
			workload: workloads.Meta{GivesBack: true}},
		{meta: strategies.Meta{Kinds: kinds, Reset: strategies.ResetsNever}},
		{meta: strategies.Meta{Kinds: kinds}, crosses: true},
		{meta: strategies.Meta{Kinds: kinds, Reset: strategies.ResetsNever}, crosses: true,
			want: "it has no reset, and this run crosses standing windows"},
	} {
		c.plan.Workload = &c.workload
		err := c.plan.CannotRun(selected(c.meta), strategies.ModeSimulate, c.crosses)
		if err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v, want %q", c.meta, err, c.want)
		}
	}
}

func TestCrossesWindows(t *testing.T) {
	for _, c := range []struct {
		kind     quota.Kind
		boundary bool
		speed    float64
		want     bool
	}{{quota.Fixed, true, 0, true}, {quota.Fixed, false, 0, false}, {quota.Fixed, false, 2, true},
		{quota.Rolling, true, 2, false}} {
		p := Plan{Policy: quota.Policy{Window: quota.Window{Kind: c.kind}}, Traffic: Traffic{
			Workload: &workloads.Meta{Boundary: c.boundary},
			Stream:   workloads.Params{Options: quota.Options{"speed": fmt.Sprint(c.speed)}},
		}}
		if p.CrossesWindows() != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestSplit(t *testing.T) {
	a := selected(strategies.Meta{Name: "a"})
	b := selected(strategies.Meta{Name: "b"})
	p := Plan{Strategies: []strategies.Selection{a, b}}
	run, skipped := p.Split(func(s strategies.Selection) error {
		if s.Name == "a" {
			return errors.New("too slow")
		}
		return nil
	})
	if !reflect.DeepEqual(run, []strategies.Selection{b}) ||
		!reflect.DeepEqual(skipped, map[string]string{"a": "too slow"}) {
		t.Errorf("%+v, %v", run, skipped)
	}
}

// TestFor: a strategy can have a policy of another kind, but not of another limit.
func TestFor(t *testing.T) {
	hourly := quota.Policy{Name: "hourly", Limit: 5, Unit: "links", Window: quota.Window{Kind: quota.CalendarHour}}
	a := selected(strategies.Meta{Name: "a", Kinds: []quota.Kind{quota.Bucket}})
	b := selected(strategies.Meta{Name: "b", Kinds: quota.Kinds()})
	p := Plan{
		Strategies: []strategies.Selection{a, b}, Traffic: Traffic{Workload: &workloads.Meta{Name: "w"}}, Policy: hourly,
		Quotas: Quotas{Policies: map[string]quota.Policy{"a": hourly.As(quota.Bucket)}},
	}
	for _, sel := range p.Strategies {
		run := p.Blank(sel, 1, &flow{n: 1, subjects: 1}, workloads.Info{})
		if want := map[string]string{"a": "5-links-refilling-5-per-1h", "b": "hourly"}[sel.Name]; run.Policy != want ||
			p.For(sel).Policy.Name != want {
			t.Errorf("%s is tried under %s, want %s", sel, run.Policy, want)
		}
		if err := cmp.Or(p.CannotRun(sel, strategies.ModeMeasure, false), p.CheckPolicy()); err != nil {
			t.Error(err)
		}
	}
	other := hourly.As(quota.Bucket)
	other.Limit = 6
	p.Policies["a"] = other
	if err := p.CheckPolicy(); err == nil || !strings.Contains(err.Error(), "another limit") {
		t.Error(err)
	}
	p.Policies["a"], p.Trouble = hourly.As(quota.Bucket), trouble.MustParse("limit:is=3@0.5")
	if err := p.CheckPolicy(); err == nil || !strings.Contains(err.Error(), "the size of a bucket cannot change") {
		t.Error(err)
	}
}

// TestPolicyLimit: a run of a known policy with another limit says what its own is.
func TestPolicyLimit(t *testing.T) {
	sel := strategies.Selection{Meta: &strategies.Meta{Name: "a"}}
	own := func(name string, limit int64) int64 {
		p := Plan{Policy: quota.Policy{Name: name, Limit: limit, Unit: "links"},
			Traffic: Traffic{Workload: &workloads.Meta{Name: "w"}}}
		return p.Blank(sel, 1, &flow{n: 1, subjects: 1}, workloads.Info{}).Params.PolicyLimit
	}
	if got := own("user-links", 7); got != 20 {
		t.Errorf("%d, want 20", got)
	}
	if got := own("user-links", 20) + own("made up", 7); got != 0 {
		t.Errorf("%d, want 0", got)
	}
}

// TestBlank is a run before it starts, with what the plan says.
func TestBlank(t *testing.T) {
	sel := strategies.Selection{Meta: &strategies.Meta{Name: "a", Form: "form"}, Options: quota.Options{}}
	p := Plan{
		Policy: quota.Policy{Name: "p", Limit: 4, Unit: "links",
			Window: quota.Window{Kind: quota.Fixed, Length: time.Minute}},
		Traffic: Traffic{
			Workload: &workloads.Meta{Name: "w"},
			Stream:   workloads.Params{Options: quota.Options{"k": "v"}}, Requests: 9, Duration: 5,
		}, Workers: 3, Instances: 2,
		Surroundings: Surroundings{Trouble: trouble.MustParse("redis:away@0.1-0.2")},
	}
	stream := &flow{n: 9, subjects: 6}
	want := results.Run{
		Identity: results.Identity{Strategy: "a", Form: "form"}, Options: sel.Options, Policy: "p", Workload: "w",
		Repetition: 2,
		Promises:   results.Promises{Guarantee: []results.Clause{}},
		Audit:      results.Audit{Valid: true, Reasons: []results.Reason{}},
		Params: results.Params{
			Label: "a", Quota: results.Quota{Limit: 4, Unit: "links", Window: "fixed 1m0s"},
			Load:     results.Load{Loop: "closed", Workers: 3, Instances: 2, Subjects: 6},
			Length:   results.Length{Requests: 9, DurationNS: 5},
			Workload: map[string]string{"k": "v"}, Stream: workloads.Fingerprint(stream, 9), Trouble: p.Trouble,
		},
	}
	if got := p.Blank(sel, 2, stream, workloads.Info{Loop: workloads.Closed}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	p.Load = OpenAt(50)
	p.Policy.Window = quota.Window{}
	p.Trouble = nil
	stream.n = 0
	want.Params.Loop = "open"
	want.Params.RatePerS = 50
	want.Params.Arrivals = "poisson"
	want.Params.Window = "standing"
	want.Params.Trouble = nil
	want.Params.Stream = workloads.Fingerprint(stream, 4096)
	if got := p.Blank(sel, 2, stream, workloads.Info{Loop: workloads.Closed}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestNewHistory keeps what the plan says, for so many workers.
func TestNewHistory(t *testing.T) {
	h := (&Plan{Keeping: Keeping{HistoryLimit: 100, HistoryDir: t.TempDir()}}).NewHistory(2, 0)
	defer func() { _ = h.Close() }()
	for _, e := range takes(0, 0, 5000, 0) {
		h.Append(1, e)
	}
	if !h.Full() || h.Lost() == 0 || h.Len() < 100 {
		t.Errorf("%d events are kept, full: %t", h.Len(), h.Full())
	}
}

func TestNewPlan(t *testing.T) {
	for _, c := range []struct{ list, policy, workload, want string }{
		{"nope", "user-links", "hot-key", `unknown strategy "nope"`},
		{"all", "nope", "hot-key", `unknown policy "nope"`},
		{"all", "user-links", "nope", `unknown workload "nope"`},
		{"all", "user-links", "hot-key", ""},
	} {
		p, err := NewPlan(c.list, c.policy, c.workload)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || p.Policy.Name != c.policy || p.Workload.Name != c.workload ||
			len(p.Strategies) != len(strategies.All()):
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}

// TestBlankSaysWhatCannotBeExplored: the answer offers no search of what has none.
func TestBlankSaysWhatCannotBeExplored(t *testing.T) {
	for name, want := range map[string]bool{"redlock": true, "pg-two-phase": true, "incr-expire": false} {
		p, err := NewPlan(name, "agent-api", "hot-key")
		if err != nil {
			t.Fatal(err)
		}
		stream, info, err := p.NewStream(1)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Blank(p.Strategies[0], 1, stream, info).NotExplored; (got != "") != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRecordGranted: what a request was not granted is an event of its own, and its second quota is charged what it was
// granted.
func TestRecordGranted(t *testing.T) {
	p := &Plan{Traffic: Traffic{Workload: &workloads.Meta{}},
		Quotas: Quotas{Second: &quota.Policy{Name: "route", Limit: 10}, Routes: 1}}
	if err := p.completeSecond(); err != nil {
		t.Fatal(err)
	}
	h := p.NewHistory(1, 0)
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	p.Record(h, 0, oracle.Event{Units: 10, Outcome: oracle.Admitted}, 4, 0)
	got := map[oracle.Outcome]int64{}
	for events, err := range h.Subjects() {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Subject >= secondFrom && (e.Units != 4 || e.Outcome != oracle.Admitted) {
				t.Errorf("the second quota: %+v", e)
			}
			got[e.Outcome] += e.Units
		}
	}
	if got[oracle.Admitted] != 8 || got[oracle.Short] != 6 {
		t.Errorf("units by outcome: %v", got)
	}
}

// TestParseTrouble: what goes wrong is read as the command line has it.
func TestParseTrouble(t *testing.T) {
	list, err := ParseTrouble("redis:away@0.3-0.6")
	if err != nil || len(list) != 1 || list[0].String() != "redis:away@0.3-0.6" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := ParseTrouble("redis:nothing"); err == nil {
		t.Error("an event that there is not was read")
	}
}
