package sim

import (
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/workloads"
)

// Preset is a simulation that a design record describes.
type Preset struct {
	// Name is the public name, e.g. "adr-005-day".
	Name string
	// Doc is one line for people, without a full stop.
	Doc string
	// Set fills the parts of a configuration that the record gives.
	Set func(c *Config) error
}

// Presets returns all presets.
func Presets() []Preset {
	return []Preset{
		{
			Name: "adr-005-day",
			Doc:  "a day of ADR-005: 100,000 agents, 10 million checks, three regions",
			Set: func(c *Config) error {
				c.Stream.Set("subjects", 100_000)
				c.Requests = 10_000_000
				c.Duration = 24 * time.Hour
				c.Load = harness.OpenAt(float64(c.Requests) / c.Duration.Seconds())
				c.Topology.Regions = ADR005Regions()
				c.Topology.Home = 0.95
				return c.named("agent-api", "steady")
			},
		},
		{
			Name: "adr-008-month",
			Doc:  "31 days of ADR-008 across the end of a February with a rush at midnight, four instances whose clocks differ by 2 s",
			Set: func(c *Config) error {
				c.Start = time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
				c.Duration, c.Load = 31*24*time.Hour, harness.OpenAt(0.2)
				c.Stream.Set("subjects", 20)
				// At one request in five seconds no request would come in the 2 s that matter.
				c.Rushes = []Rush{{Rate: 200, From: time.Date(2026, time.February, 28, 23, 59, 30, 0, time.UTC), For: time.Minute}}
				return c.fourClocks()
			},
		},
		{
			Name: "adr-008-month-end",
			Doc:  "the same instances in the last and the first ten minutes, busy enough for the 2 s to matter",
			Set: func(c *Config) error {
				c.Start = time.Date(2026, time.February, 28, 23, 50, 0, 0, time.UTC)
				c.Duration, c.Load = 20*time.Minute, harness.OpenAt(200)
				c.Stream.Set("subjects", 1_000)
				return c.fourClocks()
			},
		},
	}
}

// LookupPreset returns the preset with the given name. The error lists all names.
func LookupPreset(name string) (Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, quota.Unknown("preset", name, names, "")
}

// fourClocks are four instances of ADR-008, two of them 2 s apart.
func (c *Config) fourClocks() error {
	c.Instances = 4
	c.Trouble = trouble.List{trouble.ClockAhead(0, time.Second), trouble.ClockAhead(2, -time.Second)}
	return c.named("user-links", "steady")
}

func (c *Config) named(policy, workload string) (err error) {
	c.Policy, err = quota.LookupPolicy(policy)
	if err != nil {
		return err
	}
	c.Workload, err = workloads.Lookup(workload)
	return err
}
