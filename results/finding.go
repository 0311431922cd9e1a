package results

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
)

// Finding is a schedule that breaks a property.
type Finding struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Property that is broken.
	Property Property `json:"property"`
	// Detail is one sentence.
	Detail string `json:"detail"`
	// Units by which it is broken, if it has any; drift may be negative.
	Units int64 `json:"units,omitempty"`
	// Preemptions of the schedule if it was found by the search that counts them:
	// none with fewer breaks the property, and one with more may be shorter. nil if it
	// is a shortest one.
	Preemptions *int `json:"preemptions,omitempty"`
	// Faults that happen in the schedule.
	Faults []quota.Fault `json:"faults,omitempty"`
	// Paused is how much time passes in the schedule while a call or a round of a job is
	// under way, in nanoseconds: of schedules of the same length, one with the least is shown.
	Paused time.Duration `json:"paused_ns,omitempty"`
	// Sampled is how many schedules were run at random, with the same chance for each
	// step that could come next; 0 for none.
	Sampled int `json:"sampled_schedules,omitempty"`
	// Met is how many of them break the property. It compares findings, and is no
	// probability of a system in service.
	Met int `json:"met_schedules,omitempty"`
	// Steps of the schedule; none if the strategy ended the search and the schedule
	// could not be run again.
	Steps []Step `json:"steps"`
	// Columns are the actors by [Step.Column].
	Columns []Column `json:"columns"`
	// Token repeats the schedule.
	Token string `json:"token"`
	// ReplayWith are the flags that quotabench explore --replay takes in addition to the token, as
	// a shell reads them: a token names no command of a service.
	ReplayWith string `json:"replay_with,omitempty"`
}

// Replay is the command that repeats the schedule.
func (f *Finding) Replay() string {
	return strings.TrimSpace("quotabench explore --replay " + f.Token + " " + f.ReplayWith)
}

// HeldUp is for how long calls are held up, e.g. "15m".
func (f *Finding) HeldUp() string { return quota.LengthText(f.Paused) }

// ActorColumns are the columns that have a step, clients first; none if only
// the clock moves.
func (f *Finding) ActorColumns() []int {
	var cols []int
	for i := range f.Steps {
		if c := f.Steps[i].Column; c >= 0 && !slices.Contains(cols, c) {
			cols = append(cols, c)
		}
	}
	slices.SortFunc(cols, func(a, b int) int { return compareColumns(f.Columns[a], f.Columns[b]) })
	return cols
}

// compareColumns puts clients before jobs, and client26 after Z.
func compareColumns(a, b Column) int {
	if a.Role != b.Role {
		if a.Role == codes.RoleClient {
			return -1
		}
		return 1
	}
	if a.Role == codes.RoleClient && len(a.Name) != len(b.Name) {
		return len(a.Name) - len(b.Name)
	}
	return strings.Compare(a.Name, b.Name)
}

// Column is an actor that has steps of its own: a client or a job.
type Column struct {
	// Name is e.g. "A", or "0:sync" for a job of instance 0.
	Name string `json:"name"`
	// Role says what the actor is.
	Role codes.Role `json:"role"`
	// Label tells the actor from others of its role, e.g. "sync" for "0:sync"; empty if the name does.
	Label string `json:"label,omitempty"`
	// Instance is whose job it is, if instances have jobs of the same name; nil otherwise.
	Instance *int `json:"instance,omitempty"`
}

// Step is one line of a schedule's timeline.
type Step struct {
	// Number from 1.
	Number int `json:"number"`
	// At is virtual time since the start, in nanoseconds.
	At time.Duration `json:"at_ns"`
	// Actor that took the step.
	Actor string `json:"actor"`
	// Role of the actor.
	Role codes.Role `json:"role" jsonschema:"enum=client,enum=job,enum=clock,enum=store,enum=instance"`
	// Column of the actor; -1 for clock, store and instances.
	Column int `json:"column"`
	// Event says what happens.
	Event codes.StepEvent `json:"event"`
	// Store that the step is about: "redis", "model" for a database of record that
	// is a model, "postgres", or empty.
	Store string `json:"store,omitempty"`
	// Kind of what is sent to the store: "redis" or "sql".
	Kind string `json:"kind,omitempty"`
	// Command that is sent. If none is, it says in words what happens.
	Command string `json:"command,omitempty"`
	// Reply to the command. If effect and reply are two steps, the second one has
	// only the reply.
	Reply string `json:"reply,omitempty"`
	// Outcome is what the caller was told in this step.
	Outcome string `json:"outcome,omitempty"`
	// Told says what kind of outcome that is; of several, the first.
	Told codes.Told `json:"told,omitempty"`
	// InUse is the truth after the step, in units.
	InUse int64 `json:"in_use"`
	// Limit in units.
	Limit int64 `json:"limit"`
	// Stored are the keys of a Redis that the step changed, or that its command could have changed, as they are
	// after it.
	Stored []StoredKey `json:"stored,omitempty"`
}

// StoredKey is a key of a Redis after a step.
type StoredKey struct {
	// Key is its name; of a row, its table and its primary key.
	Key string `json:"key"`
	// Row is set for a row of a table, as it is committed. It never expires.
	Row bool `json:"row,omitempty"`
	// Value of a string.
	Value string `json:"value,omitempty"`
	// Members of a set or a sorted set, or fields of a hash: how many there are.
	Members int `json:"members,omitempty"`
	// TTL is the time to live, in nanoseconds; 0 if the key never expires.
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// Gone is set if there is no such key.
	Gone bool `json:"gone,omitempty"`
	// Unchanged is set if the step left the key as it was.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Equal reports whether two steps are the same, with all that they leave in a store.
func (s Step) Equal(other Step) bool { return reflect.DeepEqual(s, other) }
