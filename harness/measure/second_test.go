package measure

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// oneAfterTheOther asks the first quota and then the second one, which admits 7 units too many.
type oneAfterTheOther struct{ *planted }

func (o oneAfterTheOther) Take(ctx context.Context, r quota.Request) (quota.Decision, error) {
	d, err := o.planted.Take(ctx, r)
	if err != nil || !d.Admitted || r.Second.Policy == nil {
		return d, err
	}
	r.Subject = r.Second.Subject
	r.Policy = r.Second.Policy
	d, err = o.planted.Take(ctx, r)
	d.BySecond = !d.Admitted
	return d, err
}

// What the second quota leaks, and what the first one is charged for nothing, come back as planted.
func TestPlantedSecondQuota(t *testing.T) {
	p := &planted{leak: 7}
	r := measureOne(t, p, "steady", func(c *Config) {
		c.Policy.Limit, c.Requests, c.Routes, c.Load = 100_000, 1_000, 1, harness.Closed()
		c.Second = &quota.Policy{Name: "route", Limit: 300, Unit: "links", Window: c.Policy.Window}
		c.Stream.Set("subjects", 1)
		c.Stream.Set("over-quota", 0)
		m := c.Strategies[0].Meta
		m.TwoQuotas = true
		m.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return oneAfterTheOther{p}, nil }
	})
	requireValid(t, r)
	if r.Admitted != 307 || r.Rejected != 693 || r.Leak.Units != 7 || r.Leak.Trials != 1 || r.FalseRejects.Possible != 0 ||
		r.Drift.Units != 693 {
		t.Errorf("admitted %d, rejected %d, leak %+v, false rejects %+v, drift %+v", r.Admitted, r.Rejected, r.Leak,
			r.FalseRejects, r.Drift)
	}
	if r.Params.Second != "1 route: 300 links per calendar month" {
		t.Error(r.Params.Second)
	}
}

// TestSecondQuotaOfAReplay: the windows of a second quota follow recorded time, too.
func TestSecondQuotaOfAReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	rows := "time,subject\n"
	for second := range 200 {
		rows += fmt.Sprintf("2026-07-01T00:%02d:%02dZ,alice\n", second/60, second%60)
	}
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &planted{}
	r := measureOne(t, p, "trace", func(c *Config) {
		c.Stream.Set("trace", file)
		c.Policy.Limit = 100_000
		c.Routes = 1
		c.Requests = 0
		c.Second = &quota.Policy{Name: "route", Limit: 150, Unit: "links", Window: c.Policy.Window}
		c.Stream.Set("speed", 1e6)
		m := c.Strategies[0].Meta
		m.TwoQuotas = true
		m.Open = func(context.Context, strategies.Env) (strategies.Strategy, error) { return oneAfterTheOther{p}, nil }
	})
	if r.Errors != 0 || r.Admitted != 150 || r.Rejected != 50 || r.Leak.Units != 0 {
		t.Errorf("admitted %d, errors %d, leak %+v", r.Admitted, r.Errors, r.Leak)
	}
}

// TestLostTakeOfTwoQuotas: a take that never returned is in the history of both quotas.
func TestLostTakeOfTwoQuotas(t *testing.T) {
	plan := &harness.Plan{}
	plan.Second = &quota.Policy{Name: "route", Limit: 1}
	rec := newRecorder(1)
	drive := &drive{rec: rec, history: oracle.NewHistory(oracle.HistoryOptions{Workers: 1}), plan: plan}
	k := &worker{drive: drive, stripe: rec.stripe(0), call: 5, op: workloads.Op{Subject: 1, Units: 2}}
	k.lostTake(9)
	failed := 0
	for events, err := range drive.history.Subjects() {
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events {
			if event.Outcome == oracle.Failed && event.Units == 2 && event.Call == 5 && event.Reply == 9 {
				failed++
			}
		}
	}
	if failed != 2 || drive.history.Len() != 2 {
		t.Errorf("%d failed takes among %d events, want one for each of two quotas", failed, drive.history.Len())
	}
}
