package main

import (
	"errors"
	"slices"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/report/plot"
	"github.com/quotabench/quotabench/results"
)

// Records that README.md and the guides show, by their folders, and the strategy whose leak README.md shows.
const (
	firstRun    = "first"
	leakExample = "lua-reserve"
)

// guideImages are the images of README.md and of the guides.
func guideImages(evidence *Evidence) ([]Page, error) {
	leakage, err := leakageImage(evidence)
	if err != nil {
		return nil, err
	}
	schedule, err := scheduleImage(evidence)
	if err != nil {
		return nil, err
	}
	return []Page{{"../images/leakage.svg", leakage}, {"../images/explore-" + leakExample + ".svg", schedule}}, nil
}

// leakageImage has the leak and the latency of each strategy of the first run.
func leakageImage(evidence *Evidence) ([]byte, error) {
	i := slices.Index(evidence.Names, firstRun)
	if i < 0 {
		return nil, errors.New("there is no record " + firstRun)
	}
	leakage, err := plot.Leak(evidence.Runs[i])
	if err != nil {
		return nil, err
	}
	return leakage.Render("svg")
}

// scheduleImage has the schedule of the example's leak, without faults.
func scheduleImage(evidence *Evidence) ([]byte, error) {
	for _, exploration := range evidence.Explorations {
		for _, search := range exploration.Searches {
			if search.Strategy != leakExample || len(search.Faults) > 0 {
				continue
			}
			leaks := func(finding results.Finding) bool { return finding.Property == explore.Leak }
			i := slices.IndexFunc(search.Findings, leaks)
			if i < 0 {
				continue
			}
			sequence, err := plot.Sequence(&search.Findings[i])
			if err != nil {
				return nil, err
			}
			return sequence.Render("svg")
		}
	}
	return nil, errors.New("no record has a leak of " + leakExample)
}
