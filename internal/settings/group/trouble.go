package group

import (
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// trouble is what goes wrong or changes in mid-run.
type trouble struct {
	Life, Decision        time.Duration
	Cold                  bool
	Outages, LimitChanges []string
	Network               []string
	Kills                 string
	Overwrites            []string
	Pauses, Restarts      []string
}

// Trouble says what goes wrong or changes in mid-run.
func (s *Settings) Trouble() []settings.Setting {
	outages := []string{"redis:0.3-0.6", "redis:0.3-0.6:empty", "redis:0.5-0.52:failover", "redis:0.3-0.6:stopped", "postgres:0.3-0.6",
		"postgres:0.3-0.6:locked"}
	return []settings.Setting{
		{Name: "life", Title: settings.Trouble, Value: settings.Span(&s.Life, harness.MaxLife), Computed: true,
			Doc: "how long an admitted request can still be committed or refunded (default " + harness.DefaultLife.String() + ")"},
		s.decisionTimeout(),
		{Name: "cold", Title: settings.Trouble, Value: settings.Bool(&s.Cold),
			Doc: "open a connection for each command, pipeline or transaction, as functions do that start for each call"},
		{Name: "outage", Common: true, Title: settings.Trouble, Value: settings.List(&s.Outages), Complete: settings.Words(outages...),
			Doc: by(s, "inject a store outage, e.g. `redis:0.3-0.6` (shares of the duration); with :empty added it comes back without its data, "+
				"with :failover as its replica, with :failover=20ms as one that gets each write so much later; to a started server :stopped, "+
				":node-stopped, :restarted, :flushed, :scripts-lost, :full, :evicting, :locked, :commits-fail or :connections-taken is done "+
				"instead; may be repeated", texts{
				Sim: "inject a store outage, in all regions, e.g. `redis:0.3-0.6` (shares of the duration); with :empty added it comes back " +
					"without its data, with :failover=20ms as its replica of so long before; may be repeated",
			})},
		{Name: "network", Title: settings.Trouble, Value: settings.List(&s.Network),
			Complete: settings.Words("redis:latency=2ms,jitter=1ms", "redis:reply-loss=0.01", "redis/0:0.3-0.6:cut"),
			Doc: by(s, "make the network to a store worse, e.g. `redis:latency=2ms`,jitter=1ms; also bandwidth=100kB (per second), loss=0.01 "+
				"and reply-loss=0.01 (shares of the requests), and cut (held back); redis/2:0.3-0.6:cut is for one instance, from 0, and "+
				"part of the duration; may be repeated", texts{
				Sim: "make the network to a store worse, e.g. `redis:latency=2ms`,jitter=1ms; also loss=0.01 and reply-loss=0.01 (shares " +
					"of the requests); redis/2:0.3-0.6:loss=1 is for one instance, from 0, and part of the duration; may be repeated",
			})},
		{Name: "kill-callers", Title: settings.Trouble, Value: settings.Named(&s.Kills, "a share, as in 0.01 or 0.01:2"),
			Computed: true, Complete: settings.Words("0.01", "0.01:2"),
			Doc: "kill that share of the callers after their first command to a Redis, e.g. `0.01`, or 0.01:2 after their second"},
		{Name: "overwrite", Title: settings.Trouble, Value: settings.List(&s.Overwrites), Complete: settings.Words("quota:*:0.5:100"),
			Doc: "have somebody else change counters in Redis, e.g. `quota:*:0.5:100` (keys, without the prefix of the run, when, as a " +
				"share of the duration, and what is added to each whole number there); may be repeated"},
		{Name: "change-limit", Title: settings.Trouble, Value: settings.List(&s.LimitChanges), Complete: settings.Words("0.5:40"),
			Doc: "give all subjects another limit in mid-run, e.g. `0.5:40` (when, as a share of the duration, and units from then " +
				"on); may be repeated"},
		{Name: "pause", Title: settings.Trouble, Value: settings.List(&s.Pauses), Complete: settings.Words("0.5+11s"),
			Doc: "instances stand still, e.g. `0.5+11s:1` (when, as a share of the duration, for how long, and which one, from 0; without " +
				"it all of them); may be repeated"},
	}
}

// Restarting says when instances restart.
func (s *Settings) Restarting() []settings.Setting {
	return []settings.Setting{
		{Name: "restart", Title: settings.Trouble, Value: settings.List(&s.Restarts), Complete: settings.Words("0.5"),
			Doc: "instances lose their memory and the calls within them, e.g. `0.5:1` (when, as a share of the duration, and which one, " +
				"from 0; without it all of them); may be repeated"},
	}
}

// DecisionTimeout is how long a strategy may block.
func (s *Settings) DecisionTimeout() []settings.Setting {
	return []settings.Setting{s.decisionTimeout()}
}

func (s *Settings) decisionTimeout() settings.Setting {
	return settings.Setting{
		Name: "decision-timeout", Title: settings.Trouble, Value: settings.Span(&s.Decision, harness.MaxDecisionTimeout), Computed: true,
		Doc: by(s, "time after which a decision is cancelled; one that does not return within half of that again is given up, and "+
			"its strategy's run ends", texts{
			Sim:     "real time that a strategy may block outside of the simulation, on a mutex or a channel, before it is given up",
			Explore: "real time that a strategy may block outside of the search, on a mutex or a channel, before it is given up",
		}) + " (default " + harness.DefaultDecisionTimeout.String() + ")",
	}
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

// clients are those of real stores.
type clients struct {
	Pool, Retries int
	Clients       []string
	Cores         measure.Cores
}

// Connected says which clients there are, and on which cores.
func (s *Settings) Connected() []settings.Setting {
	cores := settings.Checked("give auto, shared, apart or harness=LIST,stores=LIST", func() string { return s.Cores.String() },
		func(text string) (func(), error) {
			c, err := measure.ParseCores(text)
			return func() { s.Cores = c }, err
		})
	return []settings.Setting{
		{Name: "pool", Title: settings.Trouble, Value: settings.Whole(&s.Pool, 0, measure.MaxPool), Computed: true,
			Doc: "connections per instance and store (default: what the strategy asks for, or one per worker, at most 64 to Redis and " +
				"16 to PostgreSQL)"},
		{Name: "client", Title: settings.Trouble, Value: settings.List(&s.Clients),
			Complete: settings.Words(format.Strings(strategies.Clients())...),
			Doc: "`kinds` of the Redis client, each strategy once with each: plain, or autopipeline, which sends the commands of callers " +
				"that come at the same time in one pipeline; a strategy has one of its own as in lua-reserve@autopipeline; may be repeated"},
		{Name: "client-retries", Title: settings.Trouble, Value: settings.Whole(&s.Retries, 0, measure.MaxRetries),
			Doc: "how often the Redis client repeats a failed command"},
		{Name: "cores", Title: settings.Trouble, Value: cores,
			Complete: settings.Words(measure.CoresAuto, measure.CoresShared, measure.CoresApart, "harness=", "stores="),
			Doc:      "where harness and stores run: auto, shared, apart or `lists` of processors such as harness=0-1,stores=2-3"},
	}
}
