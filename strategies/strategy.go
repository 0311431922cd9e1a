package strategies

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
)

// Errors that are a result of a strategy.
var (
	// ErrPrescribed is wrapped by errors that a strategy's source itself asks for,
	// such as a field that its algorithm expects and does not find. They are counted
	// as errors, and do not make a run suspect as a broken store would.
	ErrPrescribed = errors.New("an error by its source")
	// ErrContention is wrapped by errors that say that a request lost against others, such
	// as a conflict of versions or a lock that could not be had in all tries. That is what
	// a strategy does under load, and a result: it is an [ErrPrescribed], too.
	ErrContention = fmt.Errorf("lost against others: %w", ErrPrescribed)
)

// crossSlot begins the error of a Redis Cluster for a command whose keys belong to
// several servers.
const crossSlot = "CROSSSLOT"

// IsPrescribed reports whether an error of a Take follows from the strategy's source: it
// wraps [ErrPrescribed], or a Redis Cluster refuses a command with the keys that the
// source names.
func IsPrescribed(err error) bool {
	return errors.Is(err, ErrPrescribed) || IsCrossSlot(err)
}

// IsCrossSlot reports whether a Redis Cluster refused a command because its keys belong
// to several servers.
func IsCrossSlot(err error) bool {
	return err != nil && strings.Contains(err.Error(), crossSlot)
}

// Strategy is one application instance's way of enforcing quotas. Take is called
// from many goroutines at once.
type Strategy interface {
	// Take decides on a request and charges it if it is admitted. An error means
	// that no decision was made; a decision made without the store is a
	// [quota.Decision] with Degraded set.
	Take(ctx context.Context, req quota.Request) (quota.Decision, error)
	// Close releases what Open took. Stores themselves belong to the caller.
	Close(ctx context.Context) error
}

// Refunder gives back the units of a reservation: the work failed, or what was
// stored has been deleted.
type Refunder interface {
	Refund(ctx context.Context, reservation quota.Reservation) error
}

// Committer turns a reservation into lasting use of the actual units, which may
// differ from those reserved.
type Committer interface {
	Commit(ctx context.Context, reservation quota.Reservation, actual int64) error
}

// Viewer says what each of a strategy's tiers believes a subject has consumed in
// the window in force. Reads are not metered.
type Viewer interface {
	Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error)
}

// Screener has a tier in process that knows only which subjects have used up a
// quota, and rejects them.
type Screener interface {
	// Screens reports whether the tier holds s now. It asks no store.
	Screens(subject quota.Subject) bool
}

// Grant is one subject's state as an operator would set it up.
type Grant struct {
	Subject quota.Subject
	// Limit of this subject, in units; it replaces the one set before.
	Limit int64
	// Used units at the start.
	Used int64
}

// Provisioner sets subjects up as an operator would: creates their rows, sets or
// raises their limits, fills in what they have used. It is called before a
// subject's first request, and is not measured.
type Provisioner interface {
	Provision(ctx context.Context, policy *quota.Policy, grants []Grant) error
}

// LimitSetter keeps limits next to what was used, and changes them as an operator
// would, while the subjects are in use. Strategies that compare with the limit of each
// request's policy need none.
type LimitSetter interface {
	// SetLimit gives the subjects the limit of p, in units. What they have used stays. It
	// returns when the store has it; what the strategy keeps elsewhere may lag behind.
	SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error
}

// Jobber has background work.
type Jobber interface {
	Jobs() []Job
}

// Job is background work that the harness runs on the clock in force. A job
// never overlaps with itself.
type Job struct {
	Name string
	// Singleton jobs run on one instance only; others on each.
	Singleton bool
	// Every is the period, in policy-independent real time; 0 means only when woken.
	Every time.Duration
	// Pending reports whether a woken job has work. nil means that the job is
	// not woken by anything but its period.
	Pending func() bool
	// Run does one round of the work and reports whether it changed anything. A
	// job is idle when a round changed nothing.
	Run func(ctx context.Context) (changed bool, err error)
}

// Meter adds columns of a strategy's own to reports: retries, wasted bytes.
type Meter interface {
	// Measures returns the figures at this moment, always in the same order. It may be
	// called while requests are under way.
	Measures() []Measure
}

// Measure is one figure of a [Meter].
type Measure struct {
	Name  string // e.g. "retries"
	Unit  string // e.g. "retries", "bytes"; "us" for microseconds
	Value int64
	// Kind says how the figure is read; the zero value is a total.
	Kind measureKind
	// Metric says what it is for the metrics that are served while a run goes on; empty for
	// what only this strategy has.
	Metric codes.Metric
}

// measureKind says how a [Measure] is read.
type measureKind string

// The kinds.
const (
	// MeasureTotal counts since Open; what several instances count is added up.
	MeasureTotal measureKind = ""
	// MeasureLevel is as it stands now, such as a size; that of several instances is
	// added up.
	MeasureLevel measureKind = "level"
	// MeasureMost is the largest value so far; of several instances the largest.
	MeasureMost measureKind = "most"
)

// Tally is a running total for [Meter]. No decision may depend on it, so that an
// explorer need not tell two states apart that differ in nothing else.
type Tally struct{ atomic.Int64 }

// Most raises it to n if that is more.
func (t *Tally) Most(n int64) {
	for most := t.Load(); n > most && !t.CompareAndSwap(most, n); {
		most = t.Load()
	}
}

// Since adds the nanoseconds that have passed since begun by a clock; none if the clock was set back meanwhile.
func (t *Tally) Since(begun time.Time, clock quota.Clock) {
	t.Add(max(0, int64(clock.Now().Sub(begun))))
}

// Flag asks for a round of a job. Any caller may set it, but only the job's Pending
// and Run may read it: an explorer takes it for the job's own state, and not for
// something that a caller has seen.
type Flag struct{ atomic.Bool }
