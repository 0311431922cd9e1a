// Package family holds what families of strategies share: how they are registered, the
// clauses and windows that many have, and how they keep counts in Redis and in PostgreSQL.
package family

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Text is that of a file of a package. As the file is part of the program, it panics if there is none.
func Text(files embed.FS, name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Register registers strategies, each with what the notes.md of a package says of it: its notes, its line for people,
// its form, its source, and the docs of its own options. It panics if there is nothing, or something about an option
// that it has not.
func Register(files embed.FS, metas ...strategies.Meta) {
	all := readNotes(Text(files, "notes.md"))
	for _, meta := range metas {
		about := all[meta.Name]
		if about == nil {
			panic("there are no notes of the strategy " + meta.Name)
		}
		meta.Notes = about.Notes
		meta.Doc = about.Doc
		meta.Form = about.Form
		meta.Source = about.Source
		meta.Options = slices.Clone(meta.Options)
		for _, option := range about.Options {
			i := slices.IndexFunc(meta.Options, func(own quota.Option) bool { return own.Name == option.Name })
			if i < 0 {
				panic("strategy " + meta.Name + " has no option " + option.Name)
			}
			meta.Options[i].Doc = option.Doc
		}
		strategies.Register(meta)
	}
}

// Windowed are the windows that a count for each window serves. A rolling window is
// always being left behind.
var Windowed = []quota.Kind{
	quota.Standing, quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed,
}

// GivingBack completes the Meta of a strategy that counts admitted units for each window, and takes units back.
func GivingBack(meta strategies.Meta) strategies.Meta {
	meta.Kinds = Windowed
	meta.GivesBack = true
	meta.Counts = quota.CountsAdmitted
	return meta
}

// PerWindow completes the Meta of a strategy with a key in Redis for each window that follows another.
func PerWindow(meta strategies.Meta) strategies.Meta {
	meta.Needs = []strategies.Need{strategies.NeedRedis}
	meta.Kinds = []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed}
	return meta
}

// NotSimulated is why strategies that are SQL do not run in virtual time.
var NotSimulated = map[strategies.Mode]string{
	strategies.ModeSimulate: "it is SQL: what its statements do to each other is PostgreSQL's own, and no model stands " +
		"in for that",
}

// NoFalseReject is the clause of what rejects nothing that fits.
func NoFalseReject(tolerates ...quota.Fault) quota.Clause {
	return quota.Clause{
		Property: quota.PropertyFalseReject, Tolerates: tolerates, Formula: "0", Bound: None,
	}
}

// None is the bound of what never happens.
func None(quota.Params) int64 { return 0 }

// RoomForSingleUnits is the clause of counters that count rejected attempts too: a large
// request that was turned away has used up what a small one could still have had.
var RoomForSingleUnits = quota.Clause{
	Property:  quota.PropertyFalseReject,
	Formula:   "0",
	Condition: "while every request asks for one unit",
	Bound: func(params quota.Params) int64 {
		if params.MaxCost <= 1 {
			return 0
		}
		return params.Offered
	},
}

// CostsAtMost refuses policies with larger costs, and says why.
func CostsAtMost(most int64, policy *quota.Policy, why string) error {
	for _, c := range policy.Costs {
		if c > most {
			return fmt.Errorf("policy %s has requests of %d %s%s", policy.Name, c, policy.Unit, why)
		}
	}
	return nil
}

// OneLimit refuses limits of a subject's own.
func OneLimit(policy *quota.Policy, grants []strategies.Grant) error {
	for _, grant := range grants {
		if grant.Limit != policy.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", grant.Limit, grant.Subject,
				policy.Name, policy.Limit)
		}
	}
	return nil
}

// Account is whose units are counted, under which policy.
type Account struct {
	Policy  string
	Subject quota.Subject
}

// AccountOf is a subject's account under a policy.
func AccountOf(policy *quota.Policy, subject quota.Subject) Account {
	return Account{policy.Name, subject}
}

// ErrNoReservation is what settling the reservation of a rejected request gives.
var ErrNoReservation = errors.New("settling a reservation that no admitted request made")

// Admit completes a decision on a request that is charged to the window with the index.
func Admit(decision quota.Decision, req quota.Request, window int64) quota.Decision {
	decision.Admitted = true
	decision.Remaining = max(decision.Remaining-req.Units, 0)
	decision.Reservation = quota.Reservation{Request: req, Window: window}
	return decision
}

// Decided is the decision that Redis made, with the units that it left. A rejected caller waits for the end of the
// window, if it has one.
func Decided(admitted bool, remaining int64, end, now time.Time) quota.Decision {
	decision := quota.Decision{Admitted: admitted, Tier: quota.TierRedis, Remaining: max(0, remaining)}
	if !admitted && !end.IsZero() {
		decision.RetryAfter = end.Sub(now)
	}
	return decision
}

// Wrapf says what failed with an error; nil stays nil.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// GaveUp reports whether the caller's context is over.
func GaveUp(ctx context.Context, clock quota.Clock) bool {
	if ctx.Err() != nil {
		return true
	}
	// A connection can time out on the caller's deadline just before ctx knows.
	deadline, ok := ctx.Deadline()
	return ok && !clock.Now().Before(deadline)
}

// Peers lets the instances of one process ask each other. No decision depends on that: it is for what is reported.
type Peers[T any] struct {
	mu sync.Mutex
	of map[int]T
}

// NewPeers has no instances yet.
func NewPeers[T any]() *Peers[T] { return &Peers[T]{of: map[int]T{}} }

// Put adds an instance, or its next life.
func (p *Peers[T]) Put(instance int, t T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[instance] = t
}

// Sum adds up what f says of all instances but one; -1 leaves out none.
func (p *Peers[T]) Sum(without int, f func(T) int64) (sum int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.of {
		if i != without {
			sum += f(t)
		}
	}
	return sum
}
