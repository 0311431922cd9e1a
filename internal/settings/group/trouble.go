package group

import (
	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/stores"
)

// trouble is what goes wrong or changes in mid-run.
type trouble struct {
	Outages, LimitChanges []string
	Kills                 string
	Restarts              []string
	Clients               []string // their kinds, of real stores
}

// Trouble says what goes wrong or changes in mid-run.
func (s *Settings) Trouble() []settings.Setting {
	outages := []string{"redis:0.3-0.6", "redis:0.3-0.6:empty", "redis:0.5-0.52:failover", "redis:0.3-0.6:stopped", "postgres:0.3-0.6",
		"postgres:0.3-0.6:locked"}
	return []settings.Setting{
		{Name: "life", Title: settings.Trouble, Value: settings.Span(&s.Life, harness.MaxLife), Computed: true,
			Doc: "how long an admitted request can still be committed or refunded (default " + harness.DefaultLife.String() + ")"},
		s.Deadline()[0],
		{Name: "outage", Common: s.command == Sim, Title: settings.Trouble, Value: settings.List(&s.Outages),
			Complete: settings.Words(outages...)},
		{Name: "network", Title: settings.Trouble, Value: settings.List(&s.Network),
			Complete: settings.Words("redis:latency=2ms,jitter=1ms", "redis:reply-loss=0.01", "redis/0:0.3-0.6:cut")},
		{Name: "kill-callers", Title: settings.Trouble, Value: settings.Named(&s.Kills, "a share, as in 0.01 or 0.01:2"),
			Computed: true, Complete: settings.Words("0.01", "0.01:2")},
		{Name: "overwrite", Title: settings.Trouble, Value: settings.List(&s.Overwrites), Complete: settings.Words("quota:*:0.5:100")},
		{Name: "change-limit", Title: settings.Trouble, Value: settings.List(&s.LimitChanges), Complete: settings.Words("0.5:40")},
		{Name: "pause", Title: settings.Trouble, Value: settings.List(&s.Pauses), Complete: settings.Words("0.5+11s")},
	}
}

// Restarting says when instances restart.
func (s *Settings) Restarting() []settings.Setting {
	return []settings.Setting{
		{Name: "restart", Title: settings.Trouble, Value: settings.List(&s.Restarts), Complete: settings.Words("0.5")},
	}
}

// Deadline is how long a strategy may block.
func (s *Settings) Deadline() []settings.Setting {
	return []settings.Setting{{
		Name: "decision-timeout", Title: settings.Trouble, Value: settings.Span(&s.DecisionTimeout, harness.MaxDecisionTimeout), Computed: true,
		Doc: by(s, "time after which a decision is cancelled; one that does not return within half of that again is given up, and "+
			"its strategy's run ends", texts{
			Sim:     "real time that a strategy may block outside of the simulation, on a mutex or a channel, before it is given up",
			Explore: "real time that a strategy may block outside of the search, on a mutex or a channel, before it is given up",
		}) + " (default " + harness.DefaultDecisionTimeout.String() + ")",
	}}
}

// planned is what is to happen in mid-run: outages and changes of the limit.
func (s *Settings) planned() (outages []harness.Outage, changes []harness.LimitChange, err error) {
	for _, text := range s.Outages {
		o, err := harness.ParseOutage(text)
		if err == nil {
			_, err = stores.DriverOf(o.Store)
		}
		if err != nil {
			return nil, nil, s.Wrong("outage", err)
		}
		outages = append(outages, o)
	}
	for _, text := range s.Network {
		c, err := network.Parse(text)
		if err == nil {
			_, err = stores.DriverOf(c.Store)
		}
		if err != nil {
			return nil, nil, s.Wrong("network", err)
		}
	}
	for _, text := range s.LimitChanges {
		c, err := harness.ParseLimitChange(text)
		if err != nil {
			return nil, nil, s.Wrong("change-limit", err)
		}
		changes = append(changes, c)
	}
	return outages, changes, nil
}

// Simulated says what clients a simulation has.
func (s *Settings) Simulated() []settings.Setting { return []settings.Setting{s.client()} }

// Connected says which clients there are, and on which cores.
func (s *Settings) Connected() []settings.Setting {
	cores := settings.Checked("give auto, shared, apart or harness=LIST,stores=LIST", func() string { return s.Cores.String() },
		func(text string) (func(), error) {
			c, err := measure.ParseCores(text)
			return func() { s.Cores = c }, err
		})
	return []settings.Setting{
		s.client(),
		{Name: "skew", Title: settings.Trouble, Value: settings.List(&s.Skew), Complete: settings.Words("2s", "-2s@0.5")},
		{Name: "cores", Title: settings.Trouble, Value: cores,
			Complete: settings.Words(measure.CoresAuto, measure.CoresShared, measure.CoresApart, "harness=", "stores=")},
	}
}
