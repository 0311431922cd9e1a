package strategies

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

// Form says what a strategy is in relation to its source.
type Form string

// The forms.
const (
	Documented Form = "documented"           // faithful to a design record, flaws included
	Hardened   Form = "hardened"             // what one would ship after measuring the documented one
	Rejected   Form = "rejected alternative" // what a record considered and turned down
	Reference  Form = "reference"            // a well-known way, for comparison
	future     Form = "future"               // what a record names as a later improvement
	frontier   Form = "frontier"             // goes beyond the records
	Baseline   Form = "baseline"             // marks the floor or the ceiling of a measurement
	Library    Form = "library"              // adapter of a published library
)

// Known reports whether the form is one of those above.
func (f Form) Known() bool {
	return slices.Contains([]Form{Documented, Hardened, Rejected, Reference, future, frontier, Baseline, Library}, f)
}

// Need is a store that a strategy cannot do without.
type Need string

// The needs.
const (
	NeedRedis    Need = "redis"
	NeedPostgres Need = "postgres"
	// NeedSource is a database of record: PostgreSQL, or its model.
	NeedSource Need = "source"
	// NeedReplica is a PostgreSQL that follows the one named "postgres". If the
	// database of record is its model, so is its replica.
	NeedReplica Need = "postgres.replica"
	// NeedReplicated is a Redis with a replica, that no other strategy writes to unless
	// the main one is such. In virtual time and in a search the replica is a model, which
	// has every write at once.
	NeedReplicated Need = "redis.replicated"
)

// Store is the name of the store that serves the need: PostgreSQL is a database of record.
func (n Need) Store() string {
	if n == NeedSource {
		n = NeedPostgres
	}
	return string(n)
}

// Mode is a way to run a strategy.
type Mode string

// The modes.
const (
	ModeMeasure  Mode = "measure"  // wall clock, real stores
	ModeSimulate Mode = "simulate" // virtual time
	ModeExplore  Mode = "explore"  // every interleaving
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{ModeMeasure, ModeSimulate, ModeExplore} }

// Reset says how a strategy's counters begin a new window.
type Reset string

// The ways of resetting.
const (
	// ResetsWindow: every window starts from zero.
	ResetsWindow Reset = ""
	// ResetsNever: the source knows no windows. Such a strategy serves any limit
	// within one window and is skipped if a run crosses one.
	ResetsNever Reset = "never"
	// ResetsMissing: the source has windows but describes no reset. It runs
	// across windows, and what the omission costs is measured.
	ResetsMissing Reset = "missing"
)

// Control is what a strategy proves about the instrument that runs it.
type Control string

// The controls.
const (
	// ControlExact neither leaks nor rejects wrongly; if it seems to, the
	// instrument is wrong.
	ControlExact Control = "exact"
	// ControlOpen admits everything.
	ControlOpen Control = "open"
	// ControlRacy is known to leak under concurrency; if it seems not to, the
	// load was too weak to conclude anything from a leak of 0.
	ControlRacy Control = "racy"
)

// WithFull is the [Setup.Elsewhere] of strategies whose clients package full brings in.
const WithFull = "build with make build-full in a clone, take the archive quotabench-full of a release, " +
	"or import github.com/quotabench/quotabench/full"

// Notes are what a strategy's page and the catalogue say about it, in sentences with a
// full stop.
type Notes struct {
	// How is the algorithm, a step each, at most five.
	How []string
	// Deviations are what differs from the source, one each.
	Deviations []string
	// Trouble has the lines of a table in Markdown: what goes wrong, and what becomes of units.
	Trouble []string
	// Use and Avoid say when the strategy is the right choice, and when it is not.
	Use, Avoid string
}

// mostSteps is how many steps [Notes] may have.
const mostSteps = 5

// Meta describes a strategy. It is data: nothing else in the module knows a
// strategy's name. What most strategies say stands here, and the rest in parts by subject.
type Meta struct {
	// Name is the public name, e.g. "incr-expire".
	Name string
	// Doc is one line for people, without a full stop.
	Doc   string
	Form  Form
	Needs []Need
	// Kinds of windows it can serve.
	Kinds   []quota.Kind
	Counts  quota.Counting
	Options []quota.Option
	// Guarantee is what the strategy declares; no clause for a property means
	// that it promises nothing about it.
	Guarantee []quota.Clause
	// Open makes one application instance. Its context ends with the call. It is nil in a
	// program that was built without the strategy's client; see [BuildIn].
	Open func(ctx context.Context, env Env) (Strategy, error)
	About
	Setup

	// Serves narrows Kinds down: it returns why a policy cannot be served. nil
	// serves all policies of Kinds. A strategy that serves requests of one unit
	// only refuses policies with other Costs.
	Serves func(policy *quota.Policy) error
	Reset  Reset
	// GivesBack is set if instances implement [Refunder]: then units can be
	// returned. It says beforehand what an assertion says of an open instance.
	GivesBack bool
	// TwoQuotas is set if instances heed [quota.Request].Second.
	TwoQuotas bool
	// Down is what the strategy declares of requests that its store does not answer, under the
	// given options: "open", all of them are admitted; "closed", none is, except from what an
	// instance had leased; "" is neither. nil declares nothing.
	Down func(quota.Options) string

	// Foreign is set for code that was not written for this module, and reads the clock
	// of package time, starts goroutines or timers, or sends commands under contexts of
	// its own. Explorations and simulations run it in bubbles of testing/synctest, whose
	// clock they move. Close must end the goroutines that Open or Take have started.
	Foreign bool
	// ClockFixed is set for Foreign code that takes the time from where no bubble reaches,
	// such as a variable that a goroutine of the whole program sets. No search lets time
	// pass for it, and no simulation runs it: it would be judged by a clock that it does
	// not read.
	ClockFixed bool
	// Outside is set if what decides is a process of its own, which is asked over a
	// network and whose steps cannot be seen: it is measured, and neither simulated nor
	// explored.
	Outside bool
	// Excluded modes, each with its reason. All others are supported.
	Excluded map[Mode]string
	// PerProcess is set if each instance counts for itself, in its own memory:
	// then several together admit several limits.
	PerProcess bool
	// SharesMemory is set if callers of one instance meet in its memory, e.g. in a count, a
	// queue or a lock. A search with all callers on one instance then follows that with one on each.
	SharesMemory bool
}

// About is where a strategy comes from, and what people are told of it.
type About struct {
	// Source is the design record it comes from, e.g. "ADR-008"; empty for none.
	Source string
	// Notes say more than Doc does.
	Notes Notes
	// Record is what the design record promises that the strategy comes from, each clause
	// with its Source, whatever the strategy itself declares. It is judged and shown next
	// to Guarantee, and decides nothing.
	Record []quota.Clause
	// Core strategies are a few well-known ones, which the word core stands for. If no
	// registered one is core, it stands for all.
	Core bool
	// Control is set if the strategy also checks the instrument.
	Control Control
}

// Setup is what it takes to open a strategy with given options.
type Setup struct {
	// NeedsToo are the stores that values of options ask for in addition to Needs;
	// nil for none. A [Selection] has them among its Needs.
	NeedsToo func(quota.Options) []Need
	// BriskOptions are the options with which it comes to rest at once, if its
	// defaults keep a run waiting for seconds; nil is its defaults. The core set and
	// go test -bench use them.
	BriskOptions quota.Options
	// Check returns why options whose values are each valid do not go together; nil takes
	// all. The error begins without the strategy's name.
	Check func(quota.Options) error
	// Suits returns why the strategy cannot be measured on an open store, which it is
	// called with for each of its needs: a stores.Store, whose methods it may ask for by
	// interfaces of its own. nil takes all.
	Suits func(options quota.Options, store any) error
	// Connections is what the strategy asks of its client of the store with the name,
	// e.g. "postgres.2", under the given options; nil asks for nothing.
	Connections func(store string, options quota.Options) Connections
	// Elsewhere is set for strategies whose clients are too large to be in every
	// program. It says in one line, without a full stop, how to get a program that
	// has them, e.g. "build with make build-full in a clone".
	Elsewhere string
}

// BuiltIn returns nil if this program can open the strategy, and otherwise how
// to get one that can.
func (m *Meta) BuiltIn() error {
	if m.Open == nil && m.Elsewhere != "" {
		return &NotBuiltInError{Elsewhere: m.Elsewhere}
	}
	return nil
}

// NotBuiltInError says that this program has no client for a strategy.
type NotBuiltInError struct {
	// Elsewhere is how to get a program that has one; see [Meta.Elsewhere].
	Elsewhere string
}

func (e *NotBuiltInError) Error() string { return e.What() + ": " + e.Elsewhere }

// What is the error without the way out.
func (*NotBuiltInError) What() string { return "it is not built into this program" }

// ServesPolicy returns nil if the strategy can serve policy, and otherwise why not.
func (m *Meta) ServesPolicy(policy *quota.Policy) error {
	if !slices.Contains(m.Kinds, policy.Window.Kind) {
		names := format.List(m.Kinds, ", ", quota.Kind.String)
		return fmt.Errorf("policy %s has a %s window; %s serves %s", policy.Name, policy.Window.Kind, m.Name, names)
	}
	if m.Serves != nil {
		return m.Serves(policy)
	}
	return nil
}

// PolicyError says why a strategy cannot serve a policy of a kind that it serves.
type PolicyError struct {
	// Policy is its name.
	Policy string
	// Why is one clause.
	Why string
}

func (e *PolicyError) Error() string { return "policy " + e.Policy + ": " + e.Why }

// Unserved is a [*PolicyError] about a policy.
func Unserved(policy *quota.Policy, format string, args ...any) error {
	return &PolicyError{Policy: policy.Name, Why: fmt.Sprintf(format, args...)}
}

// ServesUnits reports whether the strategy can serve requests of so many units
// under policy: whether it serves the policy with these costs. A subject is filled
// up in units that are served.
func (m *Meta) ServesUnits(policy *quota.Policy, units int64) bool {
	q := *policy
	q.Costs = []int64{units}
	return m.ServesPolicy(&q) == nil
}

// Excludes returns why the strategy cannot be run in the mode; ok is false if it can.
func (m *Meta) Excludes(mode Mode) (why string, ok bool) {
	why, ok = m.Excluded[mode]
	if !ok && m.Outside && mode != ModeMeasure {
		return "it is a service, measured from outside: its process has steps and a clock of its own", true
	}
	if m.ClockFixed && mode == ModeSimulate && !ok {
		return "it takes the time from where nothing can move it", true
	}
	return why, ok
}

// NeedsStore reports whether the strategy has the need.
func (m *Meta) NeedsStore(n Need) bool { return slices.Contains(m.Needs, n) }

// RedisNeeds are the needs for a Redis: the main one, and others by their names.
func (m *Meta) RedisNeeds() []Need {
	var out []Need
	for _, n := range m.Needs {
		if n == NeedRedis || strings.HasPrefix(string(n), string(NeedRedis)+".") {
			out = append(out, n)
		}
	}
	return out
}

// validate reports everything that is missing or wrong in a Meta, in one line.
func (m *Meta) validate() error {
	var wrong []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	name := m.Name
	if name == "" || strings.ContainsAny(name, ",:=@ ") {
		add(true, "Name is empty or contains one of \",:=@ \"")
		name = strconv.Quote(name)
	}
	add(m.Doc == "", "Doc is empty")
	add(len(m.Notes.How) > mostSteps, "Notes.How has %d steps, and %d are the most", len(m.Notes.How), mostSteps)
	add(m.Form == "", "Form is empty: see the forms, e.g. Reference")
	add(len(m.Kinds) == 0, "Kinds is empty: it serves no kind of window")
	add(m.Counts == "", "Counts is empty: it does not say what it counts")
	add(m.Open == nil && m.Elsewhere == "", "Open is nil, and Elsewhere does not say which programs have it")
	seen := map[string]bool{}
	for _, option := range m.Options {
		if err := option.Validate(); err != nil {
			add(true, "%v", err)
		}
		add(seen[option.Name], "option %s is declared twice", option.Name)
		seen[option.Name] = true
	}
	for i, clause := range slices.Concat(m.Guarantee, m.Record) {
		if err := clause.Validate(); err != nil {
			add(true, "%v", err)
		}
		add((clause.Source != "") != (i >= len(m.Guarantee)), "the %s clause %q has a source, or has none as a record's",
			clause.Property, clause.AtMost())
	}
	if _, err := m.Select(m.BriskOptions); err != nil && wrong == nil {
		add(true, "BriskOptions: %v", err)
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("strategy %s: %s", name, strings.Join(wrong, "; "))
}
