package results

import (
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
)

// Considered is a strategy that a run which named none thought of, and what became of it.
type Considered struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Outcome says what became of it.
	Outcome codes.Outcome `json:"outcome" jsonschema:"enum=taken,enum=excluded,enum=untried"`
	// Stage decided that; of one that was taken, the stage that a reader must know of, or empty.
	Stage codes.Stage `json:"stage,omitempty"`
	// Cause is why, as a code; of one that was taken, what a reader must know of it, or empty.
	Cause codes.Cause `json:"cause,omitempty"`
	// Condition that is not met, e.g. "p99<5ms"; empty if the cause is another one.
	Condition string `json:"condition,omitempty"`
	// Detail is the subject of the cause, e.g. the figure that does not meet the condition, or the error of the strategy.
	Detail string `json:"detail,omitempty"`
	// Advice is how to get the strategy measured, e.g. with which program; empty for none.
	Advice string `json:"advice,omitempty"`
	// Units of a leak in the worst window, or the number that was measured instead.
	Units int64 `json:"units,omitempty"`
	// Pct is a share in percent: of the limit for a leak, of valid requests for false rejects, of all requests for errors.
	Pct float64 `json:"pct,omitempty"`
	// Schedule is what a search found.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Command shows it again; empty if nothing does.
	Command string `json:"command,omitempty"`
}

// Schedule is an order of store commands that speaks against a strategy, without its steps.
type Schedule struct {
	// Steps that it takes.
	Steps int `json:"steps"`
	// Clients that share one subject.
	Clients int `json:"clients"`
	// Instances of the application that they belong to.
	Instances int `json:"instances"`
	// Limit of the subject in units.
	Limit int64 `json:"limit"`
	// Faults that happen in it.
	Faults []quota.Fault `json:"faults"`
}
