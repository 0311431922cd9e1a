package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

// Exploration is all that one exploration found.
type Exploration struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Kind is "exploration": nothing in it was measured.
	Kind string `json:"kind" jsonschema:"enum=exploration"`
	// Searches in the order in which they were made.
	Searches []*Search `json:"searches"`
	// Censuses of full enumerations, in that order too.
	Censuses []*Census `json:"censuses"`
	// Replays in that order too.
	Replays []*Replay `json:"replays"`
	// Skipped lists strategies that could not take part.
	Skipped []Skipped `json:"skipped"`
	// Failed lists strategies whose search ended in an error.
	Failed []FailedExplore `json:"failed"`
	// Untried are the faults that no search of some strategy had.
	Untried []quota.Fault `json:"faults_not_tried,omitempty"`
	// Advice on commands that break no property and fail in production.
	Advice []Advice `json:"advice,omitempty"`
	// Interrupted is set if the last search was ended before its bounds.
	Interrupted bool `json:"interrupted"`
}

// NewExploration makes an empty one.
func NewExploration() Exploration {
	return Exploration{
		Schema: codes.ExplorationVersion, Kind: "exploration",
		Searches: []*Search{}, Censuses: []*Census{}, Replays: []*Replay{}, Skipped: []Skipped{}, Failed: []FailedExplore{},
	}
}

// Charts returns the schedules that are drawn: those of all findings and the
// shortest of each census, or of the replays if nothing was searched.
func (x *Exploration) Charts() (out []*Finding) {
	for _, search := range x.Searches {
		for i := range search.Findings {
			if finding := &search.Findings[i]; len(finding.Steps) > 0 {
				out = append(out, finding)
			}
		}
	}
	for _, census := range x.Censuses {
		if census.Shortest != nil && len(census.Shortest.Steps) > 0 {
			out = append(out, census.Shortest)
		}
	}
	if len(x.Searches) == 0 {
		for _, replay := range x.Replays {
			out = append(out, replay.Finding)
		}
	}
	return out
}

// With is an exploration with the searches, censuses and replays of another one behind its own. Either may be nil.
func (x *Exploration) With(more *Exploration) *Exploration {
	if x == nil || more == nil {
		return cmp.Or(x, more)
	}
	out := *x
	out.Searches = slices.Concat(x.Searches, more.Searches)
	out.Censuses = slices.Concat(x.Censuses, more.Censuses)
	out.Replays = slices.Concat(x.Replays, more.Replays)
	out.Advice = slices.Concat(x.Advice, more.Advice)
	return &out
}

// FailedExplore is a strategy whose search ended in an error.
type FailedExplore struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Error in one line.
	Error string `json:"error"`
	// Stack of the strategy's panic, or of its call that did not return; empty for
	// other errors.
	Stack string `json:"stack,omitempty"`
}

// Property is something that a schedule can break, e.g. "leak". The kinds of
// [Abort] are written in the same place.
type Property string

// Search is what a search found.
type Search struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Limit in units per subject and window.
	Limit int64 `json:"limit"`
	// Unit is what is counted, plural.
	Unit string `json:"unit"`
	// Window is when units are free again, in words, e.g. "refilling 2 per 3s", for
	// limiters of libraries, which are searched under several policies; empty for others.
	Window string `json:"window,omitempty"`
	// Clients that take part.
	Clients int `json:"clients"`
	// Instances of the application that they belong to.
	Instances int `json:"instances"`
	// Scripts say what each client does.
	Scripts []string `json:"scripts"`
	// Used units of the subject at the start.
	Used int64 `json:"used,omitempty"`
	// OtherSubjects is how many have asked once each where a script has thousands ask; 0 for none.
	OtherSubjects int64 `json:"other_subjects,omitempty"`
	// Faults that may happen.
	Faults []quota.Fault `json:"faults"`
	// Unmet are those that no schedule had, e.g. because nothing is kept that a crash could take.
	Unmet []quota.Fault `json:"faults_that_did_not_occur,omitempty"`
	// Times is how often each fault may happen in one schedule.
	Times int `json:"times"`
	// Ticks is how often the clock may tick in one schedule; 0 if it does not, or, in a record of before November 2026,
	// for once more than Times.
	Ticks int `json:"ticks,omitempty"`
	// Passes is set if time passes between calls.
	Passes bool `json:"time_passes,omitempty"`
	// Clock is the local time at which the clocks of all processes of a service stand; empty if they go on.
	Clock string `json:"clocks_stand_at,omitempty"`
	// FromNS is by how many nanoseconds the search begins after 2015-11-20 10:30 UTC.
	FromNS int64 `json:"from_ns,omitempty"`
	// Properties that were looked for.
	Properties []Property `json:"properties"`
	// JobRounds is how often each periodic job may start at a moment of its own
	// choosing; 0 if there is none.
	JobRounds int `json:"job_rounds"`
	// Asks is how often one more client asks at most, once the scripts have ended, until it
	// is rejected; 0 if there is none.
	Asks int `json:"asks,omitempty"`
	// Split is set if effect and reply are two steps.
	Split bool `json:"split_replies"`

	// Findings hold the shortest schedule found for each property that breaks.
	Findings []Finding `json:"findings"`
	// AllowedBy is the formula of a declared clause that allows the false rejects of some schedule: they are no finding.
	AllowedBy string `json:"allowed_by,omitempty"`
	// AllowedUnits are the most in one schedule, 0 if the clause allows any.
	AllowedUnits int64 `json:"allowed_units,omitempty"`
	// States met.
	States int `json:"states"`
	// Runs made.
	Runs int64 `json:"runs"`
	// Pruned runs ended in a state met before.
	Pruned int64 `json:"pruned"`
	// LeftOut runs were not made: their last two steps are independent, and the other order
	// of the two is known to lead to the same state.
	LeftOut int64 `json:"left_out,omitempty"`
	// Depth is the longest schedule in steps.
	Depth int `json:"depth"`
	// Capped says why the search ended before it had seen everything; empty if it
	// had, or had found one schedule for each property.
	Capped string `json:"capped,omitempty"`
	// Bounded is what its second part searched, which counts preemptions; nil if there
	// was none.
	Bounded *Bounded `json:"bounded,omitempty"`
	// Held are the properties that no schedule broke and that some could have: the claim is about these.
	Held []Property `json:"held,omitempty"`
	// Claim is what may be said of the properties that no schedule broke; empty
	// if every one broke, and if it is withheld.
	Claim string `json:"claim,omitempty"`
	// Withheld says why nothing may be claimed: not all of the strategy's work was
	// seen.
	Withheld []Withheld `json:"withheld,omitempty"`

	ServerFacts
}

// Withheld is a reason why nothing may be claimed.
type Withheld struct {
	// Code is a short name, e.g. "context-lost".
	Code string `json:"code"`
	// Detail is one sentence.
	Detail string `json:"detail"`
}

// Allowed says what a declared clause allows; empty for nothing.
func (s *Search) Allowed() string {
	switch {
	case s.AllowedBy == "":
		return ""
	case s.AllowedUnits == 0:
		return fmt.Sprintf("rejects %s that the limit would admit, as declared (%s)", s.Unit, s.AllowedBy)
	}
	return fmt.Sprintf("rejects up to %s that the limit would admit, as declared (%s)",
		format.Units(s.AllowedUnits, s.Unit), s.AllowedBy)
}

// Least reports whether the search is no larger than the least one that a claim needs: all schedules of two
// callers with one fault.
func (s *Search) Least() bool {
	if slices.Contains(s.Faults, quota.FaultClock) && s.Ticks > 1 {
		return false
	}
	return s.Clients <= bounds.LeastClients && len(s.Faults) <= 1 && s.Times <= 1
}

// Often is how often a fault may happen in one schedule.
func (s *Search) Often(fault quota.Fault) int {
	if fault == quota.FaultClock {
		return cmp.Or(s.Ticks, s.Times+1)
	}
	return s.Times
}

// Tried reports whether a schedule was run, in either part of the search. A search that ended before its first one says
// nothing.
func (s *Search) Tried() bool {
	return s.Runs > 0 || s.Bounded != nil && s.Bounded.Runs > 0
}

// Found returns the finding of a property, or nil.
func (s *Search) Found(property Property) *Finding {
	i := slices.IndexFunc(s.Findings, func(finding Finding) bool { return finding.Property == property })
	if i < 0 {
		return nil
	}
	return &s.Findings[i]
}

// ServerFacts is what is known of strategies that are explored on a PostgreSQL
// server, and of services that are explored on a Redis, and empty for others.
type ServerFacts struct {
	// Store names the server.
	Store string `json:"store,omitempty"`
	// Service is the command of a service of which each instance is a process; empty for what
	// runs in this process.
	Service string `json:"service,omitempty"`
	// ClockGoes is set if no time can pass in a search of the service, since the clock of its database goes by itself.
	ClockGoes bool `json:"clock_goes,omitempty"`
	// Waited counts the schedules in which a client waited for another's lock.
	Waited int64 `json:"schedules_with_waiting,omitempty"`
	// Aborts are transactions that PostgreSQL ended.
	Aborts []Abort `json:"aborts,omitempty"`
}

// Abort is a reason for which PostgreSQL ended transactions in some of the
// schedules. It breaks no property of a strategy.
type Abort struct {
	// Kind is "deadlock" or "serialization-failure".
	Kind Property `json:"kind"`
	// Schedules in which it happened.
	Schedules int64 `json:"schedules"`
	// Shortest of those that were seen.
	Shortest *Finding `json:"shortest"`
}

// Census is what an enumeration of every schedule counted.
type Census struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Limit in units per subject and window.
	Limit int64 `json:"limit"`
	// Clients that take part.
	Clients int `json:"clients"`
	// Schedules run.
	Schedules int64 `json:"schedules"`
	// Leaking schedules among them.
	Leaking int64 `json:"leaking"`
	// Worst leak in units.
	Worst int64 `json:"worst_units"`
	// Shortest leaking schedule, or nil.
	Shortest *Finding `json:"shortest,omitempty"`
	// Complete is false if a bound or an interruption ended it.
	Complete bool `json:"complete"`
	// Withheld says why the counts may not be believed.
	Withheld []Withheld `json:"withheld,omitempty"`

	ServerFacts
}

// Tried reports whether a schedule was run, or whether there was none to run.
func (c *Census) Tried() bool { return c.Schedules > 0 || c.Complete }

// Replay is a schedule that was run again.
type Replay struct {
	// Strategy is its label.
	Strategy string `json:"strategy"`
	// Policy is the public name of the policy.
	Policy string `json:"policy"`
	// Property that the token was issued for.
	Property Property `json:"property"`
	// Broken is set if it broke again.
	Broken bool `json:"broken"`
	// Finding is the schedule as it went.
	Finding *Finding `json:"finding"`
	// Leak in units.
	Leak int64 `json:"leak_units"`
	// Store that it was repeated on.
	Store string `json:"store"`
	// Same is set if every reply and every verdict was that of the embedded store.
	Same bool `json:"same_replies"`
	// Notes say in what this store differs from the one that was searched.
	Notes []string `json:"notes,omitempty"`
}

// Bounded is a search of all schedules with few preemptions, however long: in these, few
// calls and rounds of jobs are interrupted between two of their commands.
type Bounded struct {
	// Preemptions up to which all schedules were searched; nil if a bound ended it
	// before it had seen those without any.
	Preemptions *int `json:"preemptions,omitempty"`
	// Whole is set if none of them came between a command and its reply, although
	// these are two steps.
	Whole bool `json:"whole_commands"`
	// States met.
	States int `json:"states"`
	// Runs made.
	Runs int64 `json:"runs"`
	// Depth is the longest schedule in steps.
	Depth int `json:"depth"`
	// Capped says why it ended before it had seen all that it was to see; empty if it had.
	Capped string `json:"capped,omitempty"`
}

// Extent says which schedules were searched.
func (b *Bounded) Extent() string {
	where := ""
	if b.Whole {
		where = " before a command"
	}
	switch n := b.Preemptions; {
	case n == nil:
		return "some schedules with few preemptions"
	case *n == 0:
		return "all schedules without a preemption" + where
	default:
		return "all schedules with at most " + format.Number(*n, "preemption") + where
	}
}
