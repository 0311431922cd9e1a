package explore

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// Config says what to explore. Its zero value is two clients that each ask for
// one unit, with room for one of them, and no faults.
type Config struct {
	// Policy to enforce. The zero value is one of the strategy's own record if it
	// serves any, otherwise the first that it serves, and requests for the racy control. Its Limit is replaced.
	Policy quota.Policy
	// Second is a further window that the limiter has, e.g. that of 1 request per second next to one of 10 per minute: a
	// request is admitted if there is room in both, and else charged to none. The zero value is none. If requests name it
	// ([strategies.Meta].TwoQuotas) its limit is at most Limit; otherwise it is as the limiter has it.
	Second quota.Policy
	// Limit in units. 0 leaves room for all requests but one.
	Limit int64
	// Used units of the subject at the start.
	Used int64
	// Clients that share one subject. Default 2.
	Clients int
	// Scripts of the clients; the last one serves those that have none of their
	// own. The default is a take of one unit. The first client also refunds it if the
	// strategy gives units back under a standing policy, and the others take two if
	// the policy's requests differ in cost.
	Scripts []Script
	// Instances of the application; client i asks instance i modulo this. 0 means
	// one per client.
	Instances int
	// Skew of each instance's clock ahead of virtual time; missing ones are 0.
	Skew []time.Duration
	// Seed of the strategies' own random numbers; 0 means 1.
	Seed uint64
	// Faults that may happen, each at most Times times in one schedule, clock ticks
	// at most Ticks times.
	Faults []quota.Fault
	// Properties to look for; empty means all of [Properties].
	Properties []Property
	Scope
	Bounds
	Resources
	Process
	// Progress is told how far the search has come; nil for nothing.
	Progress *Progress

	conduct
}

// Scope says how much may happen in one schedule.
type Scope struct {
	// Times is how often each fault may happen. Default 1.
	Times int
	// Passes has time pass while no client is in a call and no job is at work. That is no
	// fault: what is guaranteed without one holds.
	Passes bool
	// Ticks is how often the clock may tick if time passes, or if that is a fault. 0 means
	// Times + 1: once to the end of a window, say, and once to that of the next.
	Ticks int
	// From is how long after 2015-11-20 10:30 UTC, at which searches begin, this one
	// begins, e.g. some microseconds. On PostgreSQL it is 0.
	From time.Duration
	// JobRounds is how many rounds of a periodic job may start at moments of the
	// search's choosing, since nothing is known about the phase of its period. Rounds
	// that a caller wakes come on top. 0 means one, negative none.
	JobRounds int
	// Asks is how often one more client asks for one unit once the scripts of all others have ended and everything is at
	// rest, until it is rejected, if fewer than that are left and no time has passed within a request: it shows what the
	// scripts are too short for. 0 means 4, negative none. There is no such client on PostgreSQL.
	Asks int
}

// Bounds say when a search ends.
type Bounds struct {
	// MaxStates bounds the search, and again its second part. Default 200,000, at
	// most 20,000,000. The search of a service ends after as many schedules.
	MaxStates int
	// MaxMemory bounds in bytes what a search holds of states, likewise; 0 for no bound. A
	// strategy, its stores and what the collector has not yet freed come on top: the program
	// takes up to two and a half times as much.
	MaxMemory int64
	// Preemptions is the most in the second part of a search that a bound has ended: it
	// tries all schedules in which no caller and no job is interrupted between two commands
	// of a call, then all with one interruption, and so on. 0 means 2,
	// negative no second part. On PostgreSQL there is none. Each goroutine of foreign code
	// is interrupted by itself.
	Preemptions int
	// MaxSchedules bounds an enumeration. Default 5,000,000, at most 1,000,000,000,000.
	MaxSchedules int64
	// Timeout ends a search or an enumeration that takes longer, by the wall clock, with
	// what it has found; 0 for none. The first part of a search has half of it, if there
	// is a second.
	Timeout time.Duration
	// Samples is how many schedules are run at random, at most, after a search that has
	// found something, to say how often that is met; 0 for none. They end once each finding
	// was met in a hundred. The command runs 1000.
	Samples int
	// First ends a search at the first schedule that breaks a property. Of the other
	// properties it then claims no more than that none was found so far. An enumeration
	// goes on.
	First bool
	// DecisionTimeout is how long a strategy may do nothing that the search sees, by the
	// wall clock, before it is given up. 0 means 10 seconds.
	DecisionTimeout time.Duration
}

// Resources are what a search is carried out with.
type Resources struct {
	// Workers that try steps at the same time, each with stores of its own; 0 for one per processor. What is found does
	// not depend on it. On PostgreSQL and for foreign code there is one. For a service 0 means one, and each further one
	// has instances of its own, on a Redis in memory of its own, or on one of the databases of Redis that follow that of
	// the first, as long as these are empty; with faults that take scripts from a server there is one.
	Workers int
	// Postgres is the PostgreSQL server that strategies which are SQL are explored
	// on, in a schema that is made for it and goes with it; nil for none. The instances of Service reach a database made
	// so by DATABASE_URL, or PGHOST, PGPORT, PGUSER and PGPASSWORD, and what they send there are steps, too.
	Postgres stores.Store
	// Redis is the server for Service, with an empty database, which stays the caller's; nil is one in memory, whose clock
	// moves: time can pass, the policy's windows may begin on that clock, and clocks of ServiceClock move with it.
	Redis redis.UniversalClient `json:"-"`
	// Isolate has a foreign strategy searched in a process of its own, which is this program
	// again. A panic on a goroutine that the strategy has started then ends only that process,
	// and is a finding of [Panicked] with its schedule; nothing is claimed. The strategy must
	// be registered, and the program must call [harness.ServeIsolated].
	Isolate bool
}

// Process is a service of which each instance is a process of its own: the strategy http is explored on it, in any
// language, by the commands that the instances send to Redis. Nothing but the commands is a step, and instances go by
// the wall clock. Of clients that share an instance, a command is listed under the one in whose step it comes. Faults
// of its own are timeout (the reply to a command comes when the process has given it up), script-flush and restart
// (Redis has lost its scripts, or all data and all connections).
type Process struct {
	// Service is a command, for a shell; empty for none. Each instance has a way to Redis of its own, by REDIS_URL, or
	// REDIS_HOST and REDIS_PORT, in its environment, listens on PORT, and may read LIMIT.
	Service string
	// Request is the path of a request, with {subject} for the key, and {units} for what it costs if that is not 1.
	// Default /?key={subject}.
	Request string
	// Counter is the key of the count of admitted units, with {subject}, for the property [Drift]; empty for none.
	Counter string
	// LearnWindow has time pass without a policy. A unit is taken to be free again once the longest time to live has
	// passed that the subject's keys had so far: who is rejected then is rejected falsely. Nothing else is looked for.
	LearnWindow bool
	// ServiceClock is the moment at which the clocks of all instances stand, each by its Skew later, in local time,
	// e.g. 2026-01-01 00:00:00; empty for none. That takes libfaketime, and programs that are linked dynamically.
	ServiceClock string
	// Environment is added to that of the instances, as NAME=VALUE, where e.g. {port} and {redis-url} stand for what the
	// instance is given.
	Environment []string
}

// conduct is what this package itself says of a search.
type conduct struct {
	// gaveUp is closed once nobody waits for the search any more, for example because it hangs.
	gaveUp <-chan struct{}
	// namesSecond is set if requests name the second window.
	namesSecond bool
	// shares is [engine.Setup.Shares] of the search that a schedule was found by.
	shares bool
	// began is the moment from which Timeout counts, in nanoseconds.
	began int64
	// further is set for the searches of a service after the first, which has seen how it answers.
	further bool
	// limitNamed is set if the limit was named, and not chosen for the search.
	limitNamed bool
	// clockIfAny has clocks that cannot be stopped at ServiceClock go on.
	clockIfAny bool
	// enumerates is set if every schedule is run, whatever states it leads to.
	enumerates bool
	// rehearses is set if a search is made again under another wall clock.
	rehearses bool
	// everyOrder has all steps tried, also if it is known what they lead to. audit, if not nil, has
	// those tried that are asleep, and is told what they lead to.
	everyOrder bool
	audit      func(search *stateSearch, e *edge) error
	// sofar is told what is found as it is found; nil for nothing.
	sofar *progress
}

// Faults lists the faults that can be injected. A service has others: see [Process].
func Faults() []quota.Fault {
	return slices.DeleteFunc(slices.Clone(engine.Faults), engine.OfServices)
}

// Untried are the faults that can befall one of the strategies, or services, that were searched, and that no search
// of it had.
func Untried(searches []*results.Search) (untried []quota.Fault) {
	tried := map[string][]quota.Fault{}
	possible := Faults()
	for _, search := range searches {
		tried[search.Strategy] = append(tried[search.Strategy], search.Faults...)
		if search.Service != "" {
			possible = ofServiceFaults
		}
		if search.ClockGoes {
			possible = slices.Clone(possible)
			possible = slices.DeleteFunc(possible, func(fault quota.Fault) bool { return fault == quota.FaultClock })
		}
	}
	for _, fault := range possible {
		for _, faults := range tried {
			if !slices.Contains(faults, fault) {
				untried = append(untried, fault)
				break
			}
		}
	}
	return untried
}

// ParseFaults reads a comma-separated list of faults, or "all", which are those of [Faults].
func ParseFaults(list string) ([]quota.Fault, error) {
	switch list {
	case "":
		return nil, nil
	case "all":
		return Faults(), nil
	}
	return namesIn(list, "fault", engine.Faults)
}

// UnfitError says that a strategy cannot be explored in the way that is asked for.
type UnfitError = engine.UnfitError

// The scripts of clients.
type (
	// Script is what one client does, in order.
	Script = engine.Script
	// Action is one step of a script.
	Action = engine.Action
)

// What a client can do.
const (
	Take   = engine.Take
	Commit = engine.Commit
	Refund = engine.Refund
	Limit  = engine.Limit
)

// ParseScripts reads scripts such as "take=5,refund;take": one per client,
// separated by semicolons, the last of them for all further clients.
func ParseScripts(text string) ([]Script, error) { return engine.ParseScripts(text) }
