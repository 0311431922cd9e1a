package sim

import (
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// Preset is a simulation that a design record describes.
type Preset struct {
	// Name is the public name, e.g. "adr-005-day".
	Name string
	// Doc is one line for people, without a full stop.
	Doc string
	// Set fills the parts of a configuration that the record gives.
	Set func(config *Config) error
}

// Presets returns all presets.
func Presets() []Preset {
	return []Preset{
		{
			Name: "adr-005-day",
			Doc:  "a day of ADR-005: 100,000 agents, 10 million checks, three regions",
			Set: func(config *Config) error {
				config.Stream.Set("subjects", 100_000)
				config.Requests = 10_000_000
				config.Duration = 24 * time.Hour
				config.Load = harness.OpenAt(float64(config.Requests) / config.Duration.Seconds())
				config.Topology.Regions = adr005Regions()
				config.Topology.Home = 0.95
				return config.named("agent-api", "steady")
			},
		},
		{
			Name: "adr-008-month",
			Doc: "31 days of ADR-008 across the end of a February with a rush at midnight, four instances whose clocks " +
				"differ by 2 s",
			Set: func(config *Config) error {
				config.Start = time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
				config.Duration, config.Load = 31*24*time.Hour, harness.OpenAt(0.2)
				config.Stream.Set("subjects", 20)
				// At one request in five seconds no request would come in the 2 s that matter.
				config.Rushes = []Rush{{Rate: 200, From: time.Date(2026, time.February, 28, 23, 59, 30, 0, time.UTC),
					For: time.Minute}}
				return config.fourClocks()
			},
		},
		{
			Name: "adr-008-month-end",
			Doc:  "the same instances in the last and the first ten minutes, busy enough for the 2 s to matter",
			Set: func(config *Config) error {
				config.Start = time.Date(2026, time.February, 28, 23, 50, 0, 0, time.UTC)
				config.Duration, config.Load = 20*time.Minute, harness.OpenAt(200)
				config.Stream.Set("subjects", 1_000)
				return config.fourClocks()
			},
		},
	}
}

// LookupPreset returns the preset with the given name. The error lists all names.
func LookupPreset(name string) (Preset, error) {
	var names []string
	for _, preset := range Presets() {
		if preset.Name == name {
			return preset, nil
		}
		names = append(names, preset.Name)
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
