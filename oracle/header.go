package oracle

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// Header is what a history file says about its events: enough to judge them
// again.
type Header struct {
	// Strategy is the label of the strategy, with its options.
	Strategy string
	// Policy that was in force. Name, Limit, Unit and Window are kept.
	Policy quota.Policy
	// Changes of the limit while the run went on; see [Config].
	Changes []LimitChange
	// Epoch is the moment of nanosecond 0.
	Epoch time.Time
	// Counts is what the strategy's counters contain; may be empty.
	Counts quota.Counting
	// Tiers by their number in events.
	Tiers []string
	// Initial is what subjects had in use at the epoch, in units. Subjects that are
	// missing had nothing.
	Initial map[uint32]int64
	// Names of subjects, if they are known.
	Names map[uint32]string
}

// Config is what the events are to be judged against.
func (h *Header) Config() Config {
	initial := h.Initial
	return Config{
		Window: h.Policy.Window, Limit: h.Policy.Limit, Changes: h.Changes, Epoch: h.Epoch,
		Initial: func(s uint32) int64 { return initial[s] },
	}
}

// version is the first one of the format that has all that the header says; 2 at least is
// written.
func (h *Header) version() int {
	if len(h.Changes) > 0 {
		return changingVersion
	}
	return formatVersion
}

// headerJSON is the payload of a header frame.
type headerJSON struct {
	Strategy string         `json:"strategy,omitempty"`
	Policy   policyJSON     `json:"policy"`
	Epoch    time.Time      `json:"epoch"`
	Counts   quota.Counting `json:"counts,omitempty"`
	Tiers    []string       `json:"tiers,omitempty"`
	Limits   []LimitChange  `json:"limits,omitempty"`
}

type policyJSON struct {
	Name     string        `json:"name,omitempty"`
	Limit    int64         `json:"limit"`
	Unit     string        `json:"unit,omitempty"`
	Window   quota.Kind    `json:"window"`
	Length   int64         `json:"length_ns,omitempty"`
	Refill   int64         `json:"refill,omitempty"`
	Location string        `json:"location,omitempty"`
	Timeline *timelineJSON `json:"timeline,omitempty"`
}

type timelineJSON struct {
	Real   time.Time `json:"real"`
	Policy time.Time `json:"policy"`
	Speed  float64   `json:"speed,omitempty"`
}

func (h *Header) encode() ([]byte, error) {
	policy := &h.Policy
	window := &h.Policy.Window
	out := headerJSON{
		Strategy: h.Strategy, Epoch: h.Epoch, Counts: h.Counts, Tiers: h.Tiers, Limits: h.Changes,
		Policy: policyJSON{Name: policy.Name, Limit: policy.Limit, Unit: policy.Unit, Window: window.Kind,
			Length: int64(window.Length), Refill: window.Refill},
	}
	if window.Location != nil {
		out.Policy.Location = window.Location.String()
		if _, err := time.LoadLocation(out.Policy.Location); err != nil || window.Location == time.Local {
			return nil, fmt.Errorf("the policy's location %q has no name that another machine knows", out.Policy.Location)
		}
	}
	if timeline := window.Timeline; timeline != (quota.Timeline{}) {
		out.Policy.Timeline = &timelineJSON{timeline.Real, timeline.Policy, timeline.Speed}
	}
	if err := valid(window, policy.Limit, h.Changes); err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (h *Header) decode(data []byte) error {
	var in headerJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("the header cannot be read: %w", err)
	}
	policyJSON := &in.Policy
	*h = Header{
		Strategy: in.Strategy, Epoch: in.Epoch, Counts: in.Counts, Tiers: in.Tiers, Changes: in.Limits,
		Policy: quota.Policy{
			Name: policyJSON.Name, Limit: policyJSON.Limit, Unit: policyJSON.Unit,
			Window: quota.Window{Kind: policyJSON.Window, Length: time.Duration(policyJSON.Length), Refill: policyJSON.Refill},
		},
	}
	if policyJSON.Location != "" {
		loc, err := time.LoadLocation(policyJSON.Location)
		if err != nil || policyJSON.Location == "Local" {
			return fmt.Errorf("the policy's location %q is not known on this machine", policyJSON.Location)
		}
		h.Policy.Window.Location = loc
	}
	if timelineJSON := policyJSON.Timeline; timelineJSON != nil {
		h.Policy.Window.Timeline = quota.Timeline{Real: timelineJSON.Real, Policy: timelineJSON.Policy,
			Speed: timelineJSON.Speed}
	}
	return valid(&h.Policy.Window, policyJSON.Limit, h.Changes)
}

// valid refuses windows and limits that cannot be judged.
func valid(window *quota.Window, limit int64, changes []LimitChange) error {
	speed := window.Timeline.Speed
	switch {
	case limit < 0:
		return fmt.Errorf("the policy has a limit of %d", limit)
	case math.IsNaN(speed) || math.IsInf(speed, 0) || speed < 0:
		return fmt.Errorf("the policy's time has a speed of %v", speed)
	case window.Kind.HasLength() && window.RealLength() < 1:
		return errors.New("the policy's window has no length")
	case window.Kind == quota.Bucket && window.Refill < 1:
		return errors.New("the policy's bucket is never refilled")
	}
	return validChanges(window, changes)
}
