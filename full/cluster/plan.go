package cluster

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// fingerprint is equal for generators that have the same version of the program and measure the same. What each has for
// itself, such as its place, is not in it.
func fingerprint(config *measure.Config) (string, error) {
	own := *config
	own.Peers = nil
	stream, info, err := own.NewStream(1)
	if err != nil {
		return "", err
	}
	what := struct {
		Version     string
		Seed        uint64
		Rounds      int
		Policy      string
		Costs       []int64
		Life, Reply time.Duration
		Runs        []results.Params
	}{version.Text(), config.Seed, config.Rounds, config.Policy.String(), config.Policy.Costs, config.Life,
		config.DecisionTimeout, nil}
	for _, selection := range own.Strategies {
		what.Runs = append(what.Runs, own.Blank(selection, 1, stream, info).Params)
	}
	data, err := json.Marshal(what)
	return fmt.Sprintf("%x", sha256.Sum256(data))[:16], err
}

// adapt fills in what follows for generators, and reports what they would not do alike.
func adapt(config *measure.Config) error {
	config.NoReference = true // it would disturb the other generators
	if config.Cores.Mode == "" || config.Cores.Mode == measure.CoresAuto {
		config.Cores.Mode = measure.CoresShared // others may be on this machine
	}
	switch {
	case config.Load.Loop == harness.Both:
		return errors.New("generators have one loop: give --loop closed, or open and a --rate")
	case config.Budget > 0 || config.Enough != nil:
		return errors.New("generators end at the same round: give --rounds, and no --budget")
	case len(config.Trouble.Of(trouble.Outage, trouble.Change, trouble.Tamper, trouble.Skew)) > 0 || config.Second != nil:
		return errors.New("generators share no outages, overwrites, wrong clocks, changes of the limit or second quotas: " +
			"leave them out")
	case config.Workload.Boundary && config.Duration == 0:
		return fmt.Errorf("the workload %s needs a --duration for generators to know when the window ends",
			config.Workload.Name)
	}
	return nil
}

// cannotShare returns why so many generators cannot share what a strategy counts in, or nil.
func cannotShare(config *measure.Config, of int, selection strategies.Selection) error {
	if selection.Control == strategies.ControlExact && of > 1 {
		return errors.New("it is one lock in one process, and each generator would have its own: give a strategy that " +
			"counts in a store")
	}
	for _, need := range selection.Needs {
		name := need.Store()
		flag := "--store " + name + "=URL"
		if driver, err := stores.DriverOf(name); err == nil && driver.Name == name {
			flag = driver.Asked("URL")
		}
		store, ok := config.Stores.Get(name)
		if ok && store.Owned() {
			return fmt.Errorf("generators share a server: give its URL by %s", flag)
		}
		if !ok {
			return fmt.Errorf("generators share a server, and a model of %s is this process' own: give a URL by %s", name, flag)
		}
	}
	return nil
}
