package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// hotKeyLimit is the limit of workloads that count crossings where --limit does
// not say: a small one is crossed thousands of times instead of once.
const hotKeyLimit = 50

// What --quick stands for.
const (
	quickRounds   = 2
	quickDuration = 100 * time.Millisecond
)

// plan turns the settings into a measurement without stores. Afterwards the
// settings hold what was worked out, so that printing them says what is in force.
func (s *settings) plan() (measure.Config, error) {
	s.expand()
	c := measure.Config{
		Plan: harness.Plan{
			Stream: s.stream(), Seed: s.seed, Workers: s.workers, Instances: s.instances,
			Arrivals: s.arrivals, Requests: s.requests, Duration: s.duration,
			Life: s.life, Archive: s.history, Cold: s.cold, DecisionTimeout: s.decision,
		},
		Rounds: s.rounds, Budget: s.budget, Pool: s.pool, ClientRetries: s.retries, Cores: s.cores,
	}
	if err := s.choose(&c.Plan); err != nil {
		return c, err
	}
	var err error
	if c.Outages, c.LimitChanges, err = s.planned(); err != nil {
		return c, err
	}
	if s.gates, err = s.runGates(); err != nil {
		return c, err
	}
	if err := s.checkStores(); err != nil {
		return c, err
	}
	if c.Rate = s.rate; s.loop == loopClosed || s.loop == loopBoth {
		c.Rate = 0
	}
	s.look(&c)
	if err := c.Complete(); err != nil {
		return c, fail(ExitUsage, err)
	}
	info, err := s.rehearse(&c.Plan)
	if err != nil {
		return c, err
	}
	if _, err := c.CheckReplay(info, measure.MaxDuration); err != nil {
		return c, fail(ExitUsage, err)
	}
	if err := s.loops(&c, info); err != nil {
		return c, err
	}
	if err := c.Complete(); err != nil { // the rates are known now
		return c, fail(ExitUsage, err)
	}
	s.limit, s.workers, s.life, s.decision = c.Policy.Limit, c.Workers, c.Life, c.DecisionTimeout
	if !s.looking { // a duration that is given ends that
		s.rounds, s.duration = c.Rounds, c.Duration
	}
	return c, nil
}

// The ways to issue requests.
const (
	loopBoth   = "both"
	loopClosed = "closed"
	loopOpen   = "open"
)

// loops decides how requests are issued, once the workload is known.
func (s *settings) loops(c *measure.Config, info workloads.Info) error {
	open := info.Loop == workloads.Open
	if s.loop == "" {
		switch s.loop = loopBoth; {
		case open:
			s.loop = loopOpen
		case s.quick && s.rate == 0:
			s.loop = loopClosed // an open loop takes as long as its percentiles need
		}
	}
	switch {
	case s.loop == loopBoth && open:
		return s.wrong("loop", fmt.Errorf("requests of the workload %s have times of their own: give open, or closed to ignore them", c.Workload.Name))
	case s.loop == loopOpen && !open && s.rate == 0:
		return s.wrong("loop", errors.New("an open loop needs a rate: give --rate"))
	case s.loop == loopClosed && s.rate > 0:
		return s.wrong("rate", errors.New("a closed loop has no rate: give --loop both or open"))
	}
	switch s.loop {
	case loopBoth:
		c.Rate = 0
		c.LatencyRate, c.RateFrom = cmp.Or(s.rate, measure.AutoRate), s.rateFrom
	case loopClosed:
		c.Closed = true
	}
	return nil
}

// planned is what is to happen in mid-run: outages and changes of the limit.
func (s *settings) planned() (outages []harness.Outage, changes []harness.LimitChange, err error) {
	for _, text := range s.outages {
		o, err := harness.ParseOutage(text)
		if err == nil {
			_, err = stores.DriverOf(o.Store)
		}
		if err != nil {
			return nil, nil, s.wrong("outage", err)
		}
		outages = append(outages, o)
	}
	for _, text := range s.limitChanges {
		c, err := harness.ParseLimitChange(text)
		if err != nil {
			return nil, nil, s.wrong("change-limit", err)
		}
		changes = append(changes, c)
	}
	return outages, changes, nil
}

// expand follows what one setting implies for others. It counts where the other
// one was not given in a place that ranks as high.
func (s *settings) expand() {
	if name, by := s.implied(); name != "" && s.rank(by) > s.rank("workload") {
		s.workload = name
	}
	if !s.quick {
		return
	}
	if s.rank("quick") > s.rank("rounds") {
		s.rounds = quickRounds
	}
	replayed, _ := s.implied()
	if s.rank("quick") > s.rank("duration") && s.requests == 0 && replayed == "" {
		s.duration = quickDuration
	}
}

// choose looks up what has a name.
func (s *settings) choose(c *harness.Plan) (err error) {
	if len(s.strategy) == 0 {
		return s.wrong("strategy", errors.New("give at least one, or all"))
	}
	if c.Strategies, err = strategies.Parse(strings.Join(s.strategy, ",")); err != nil {
		return s.wrong("strategy", err)
	}
	if !s.virtual {
		if c.Strategies, err = s.withClients(c.Strategies); err != nil {
			return s.wrong("client", err)
		}
	}
	if s.shard != "" {
		if c.Shard, err = workloads.ParseShard(s.shard); err != nil {
			return s.wrong("shard", err)
		}
	}
	if c.Workload, err = workloads.Lookup(s.workload); err != nil {
		return s.wrong("workload", err)
	}
	if c.Policy, err = lookupPolicy(s.policy); err != nil {
		return s.wrong("policy", err)
	}
	switch {
	case s.given("limit"):
		c.Policy.Limit = s.limit
	case c.Workload.Crosses && listed(c.Policy.Name): // an own policy says what it means
		c.Policy.Limit = min(c.Policy.Limit, hotKeyLimit*largest(c.Policy.Costs))
	}
	return nil
}

// withClients are the strategies with each kind of client that is asked for.
func (s *settings) withClients(all []strategies.Selection) ([]strategies.Selection, error) {
	var kinds []strategies.Client
	for name := range strings.SplitSeq(strings.Join(s.clients, ","), ",") {
		kind, err := strategies.ParseClient(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		if slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("%s is given twice", kind)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 1 && kinds[0] == strategies.PlainClient {
		return all, nil
	}
	return strategies.WithClients(all, kinds), nil
}

// checkStores refuses stores that cannot be meant, and an image that would not be
// used.
func (s *settings) checkStores() error {
	specs, err := s.storeSpecs()
	if err != nil {
		return err
	}
	for _, d := range stores.Drivers() {
		if d.Image == "" || *s.images[d.Name] == "" {
			continue
		}
		var others []string
		for _, x := range specs {
			if x.Options.Image == *s.images[d.Name] {
				others = append(others, redactURLs(x.From))
			}
		}
		if !slices.Contains(others, "container") && !slices.Contains(others, "auto") {
			asked := cmp.Or(strings.Join(others, ", "), "no "+d.Title)
			return s.wrong(d.Name+"-image", fmt.Errorf("an image is for --%s container, and %s is asked for", d.Name, asked))
		}
	}
	return nil
}

// rehearse makes the workload's stream once, to find what is wrong with it or
// with its trace before anything is started.
func (s *settings) rehearse(c *harness.Plan) (workloads.Info, error) {
	_, info, err := c.NewStream(1)
	var file *fs.PathError
	switch {
	case err == nil:
		return info, nil
	case errors.As(err, &file):
		return info, s.unreadable(file.Path, file.Err)
	default:
		return info, fail(ExitUsage, err)
	}
}

func largest(costs []int64) int64 {
	if len(costs) == 0 {
		return 1
	}
	return slices.Max(costs)
}
