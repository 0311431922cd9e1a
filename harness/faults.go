package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/seed"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// Outage takes a store away for part of every run.
type Outage struct {
	// Store is a store's name, e.g. "redis" or "postgres".
	Store string
	// From and To are shares of the duration, 0 to 1.
	From, To float64
	// Empty is set if the store comes back without anything that it held, as one
	// does that keeps nothing on a disk and is restarted. Only Redis can.
	Empty bool
	// Failover is set if the store is a master that dies, and comes back as its
	// replica: without the writes that had not reached that one. Only Redis can.
	Failover bool
	// Behind is how much later than its master the replica gets each write, so that it lacks those of so long before its
	// death. 0 leaves that to the servers; a model's replica is then not behind at all.
	Behind time.Duration
	// Fault is what is done to the store instead of taking it away, if it was started here; "" for nothing. "stopped" (its
	// processes, until the outage ends) and "restarted" (killed, and started again on its data when the outage ends) are for
	// Redis and PostgreSQL, "node-stopped" for the first of several servers. For Redis are "flushed" (FLUSHALL), "scripts-lost"
	// (SCRIPT FLUSH), "full" (its memory) and "evicting", for a cluster of it "slot-moved" (one with keys of the run, to another
	// master) and "node-killed" (a master, whose replica takes its place), for PostgreSQL "locked" (its tables), "commits-fail"
	// and "connections-taken" (by another client).
	Fault string
}

// inflicted are the faults of stores, with what each is for strategies. A command of which the caller knows no answer
// may still take effect when its store goes on, or may have before that was killed. What a caller does who has a script
// no more is no fault of the store. Commands of several keys of a slot are refused while it moves.
var inflicted = map[string][]quota.Fault{
	"stopped": {quota.FaultOutage, quota.FaultLostReply}, "restarted": {quota.FaultOutage, quota.FaultLostReply},
	"node-stopped": {quota.FaultOutage, quota.FaultLostReply, quota.FaultFailover},
	"slot-moved":   {quota.FaultOutage},
	"node-killed":  {quota.FaultOutage, quota.FaultLostReply, quota.FaultFailover, quota.FaultRetry},
	"flushed":      {quota.FaultEviction}, "scripts-lost": nil, "full": {quota.FaultOutage},
	"evicting": {quota.FaultEviction}, "locked": {quota.FaultOutage}, "commits-fail": {quota.FaultOutage},
	"connections-taken": {quota.FaultOutage, quota.FaultLostReply},
}

// ParseOutage reads "redis:0.3-0.6", "redis:0.3-0.6:empty" for a store that comes back
// without what it held, and "redis:0.5-0.52:failover" or "redis:0.5-0.52:failover=20ms"
// for one that comes back as its replica, which got its last write so long before. "redis:0.3-0.6:stopped" is a
// [Outage.Fault].
func ParseOutage(text string) (Outage, error) {
	bad := fmt.Errorf("%q is not of the form redis:0.3-0.6, redis:0.3-0.6:empty or redis:0.5-0.52:failover=20ms: "+
		"a store's name, from when to when in shares of the duration, and whether it comes back empty "+
		"or as its replica, or what is done to it instead, %s", text, strings.Join(slices.Sorted(maps.Keys(inflicted)), ", "))
	store, span, ok := strings.Cut(text, ":")
	span, back, comesBack := strings.Cut(span, ":")
	from, to, ok2 := strings.Cut(span, "-")
	if !ok || !ok2 || store == "" {
		return Outage{}, bad
	}
	o := Outage{Store: store}
	if comesBack && !o.comesBack(back) {
		return Outage{}, bad
	}
	var err1, err2 error
	o.From, err1 = strconv.ParseFloat(from, 64)
	o.To, err2 = strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || !(o.From >= 0 && o.From < o.To && o.To <= 1) {
		return Outage{}, bad
	}
	return o, nil
}

// The words for how a store comes back.
const (
	backEmpty    = "empty"
	backFailover = "failover"
)

// comesBack reads how the store comes back.
func (o *Outage) comesBack(text string) bool {
	word, behind, timed := strings.Cut(text, "=")
	o.Empty, o.Failover = text == backEmpty, word == backFailover
	if timed {
		var err error
		if o.Behind, err = time.ParseDuration(behind); err != nil || o.Behind <= 0 {
			return false
		}
	}
	if _, ok := inflicted[text]; ok {
		o.Fault = text
	}
	return o.Empty || o.Failover || o.Fault != ""
}

// String renders the outage as [ParseOutage] reads it.
func (o Outage) String() string {
	s := fmt.Sprintf("%s:%g-%g", o.Store, o.From, o.To)
	switch {
	case o.Fault != "":
		s += ":" + o.Fault
	case o.Empty:
		s += ":" + backEmpty
	case o.Failover && o.Behind > 0:
		s += ":" + backFailover + "=" + o.Behind.String()
	case o.Failover:
		s += ":" + backFailover
	}
	return s
}

// Faults are what happens to strategies in an outage. A store that comes back empty
// has dropped every key, and one that comes back as its replica its last writes.
func (o Outage) Faults() []quota.Fault {
	switch {
	case o.Fault != "":
		return inflicted[o.Fault]
	case o.Empty:
		return []quota.Fault{quota.FaultOutage, quota.FaultEviction}
	case o.Failover:
		return []quota.Fault{quota.FaultOutage, quota.FaultFailover}
	}
	return []quota.Fault{quota.FaultOutage}
}

// Within returns when the outage is to begin and to end in a run of that length,
// since the run's beginning.
func (o Outage) Within(length time.Duration) (from, to time.Duration) {
	return time.Duration(o.From * float64(length)), time.Duration(o.To * float64(length))
}

// NetworkSpans are when the network loses requests, or with all set when anything is wrong with it for a part of the run, in
// nanoseconds since its beginning and until its end.
func (p *Plan) NetworkSpans(all bool, end int64) (out []results.Span) {
	for i, c := range network.Plan(p.Network) {
		from, to := c.Within(p.Duration)
		if loses := len(c.Faults()) > 0; !all && loses || all && (c.From > 0 || c.To < 1) {
			out = append(out, results.Span{Store: c.Store, Network: p.Network[i], FromNS: int64(from), ToNS: min(int64(to), end)})
		}
	}
	return out
}

// explains reports whether the error of a take may be the doing of the outage s. grace
// is how long connections that broke may still be found.
func explains(s results.Span, e *oracle.Event, grace int64) bool {
	return e.Reply >= s.FromNS && e.Call <= s.ToNS+grace
}

// away counts the answer to a take that began and ended in an outage, and looks for the first one after it that the
// store decided.
func (j *judgement) away(k int, e *oracle.Event) {
	s := &j.Outages[k]
	kind, _, _ := strings.Cut(s.Store, ".")
	byStore := (e.Outcome == oracle.Admitted || e.Outcome == oracle.Rejected) && int(e.Tier) < len(j.Tiers) && j.Tiers[e.Tier] == kind
	if after := e.Reply - s.ToNS; byStore && s.Network == "" && after > 0 && (j.recovered[k] == 0 || after < j.recovered[k]) {
		j.recovered[k] = after
	}
	if e.Call < s.FromNS || e.Reply > s.ToNS {
		return
	}
	byStore = byStore && e.Call >= s.Away[0] && e.Reply <= s.Away[1]
	switch e.Outcome {
	case oracle.Admitted:
		s.Admitted++
		if byStore {
			s.AdmittedByStore++
		}
	case oracle.Failed:
		s.Errors++
	case oracle.Rejected, oracle.RejectedDegraded, oracle.Elsewhere:
		s.Rejected++
		if byStore {
			s.RejectedByStore++
		}
	}
}

// LimitChange gives all subjects another limit in mid-run.
type LimitChange struct {
	// At is a share of the duration, above 0 and below 1.
	At float64
	// Limit in units, from then on.
	Limit int64
}

// ParseLimitChange reads "0.5:40": from half of the duration on, the limit is 40.
func ParseLimitChange(text string) (c LimitChange, err error) {
	at, limit, ok := strings.Cut(text, ":")
	var err1, err2 error
	c.At, err1 = strconv.ParseFloat(at, 64)
	c.Limit, err2 = strconv.ParseInt(limit, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return c, fmt.Errorf("%q is not of the form 0.5:40: when, in shares of the duration, and the limit from then on, in units", text)
	}
	return c, c.check()
}

func (c LimitChange) check() error {
	switch {
	case !(c.At > 0 && c.At < 1):
		return fmt.Errorf("the limit is to change at %g of the duration: give a share above 0 and below 1", c.At)
	case c.Limit < 1 || c.Limit > quota.MaxLimit:
		return fmt.Errorf("the limit is to become %d: give 1 to %d", c.Limit, int64(quota.MaxLimit))
	}
	return nil
}

// String renders the change as [ParseLimitChange] reads it.
func (c LimitChange) String() string { return fmt.Sprintf("%g:%d", c.At, c.Limit) }

// After is how long after the beginning of a run of that length the limit changes.
func (c LimitChange) After(length time.Duration) time.Duration {
	return time.Duration(c.At * float64(length))
}

func (p *Plan) checkLimitChanges() error {
	if len(p.LimitChanges) == 0 {
		return nil
	}
	if p.Duration == 0 {
		return errors.New("a limit that changes needs a duration to change in: give --duration")
	}
	last := 0.0
	for _, c := range p.LimitChanges {
		if err := c.check(); err != nil {
			return err
		}
		if c.At <= last {
			return errors.New("changes of the limit come one after the other: give them in the order of their time")
		}
		last = c.At
	}
	return nil
}

// LowestLimit is the lowest that is in force in a run: what a rejection is checked against
// if its request saw the limit change.
func (p *Plan) LowestLimit() int64 {
	lowest := p.Policy.Limit
	for _, c := range p.LimitChanges {
		lowest = min(lowest, c.Limit)
	}
	return lowest
}

// LimitedSubjects are the first n subjects of a stream if the strategy keeps limits
// of them, and none if it goes by those of the requests.
func (s *Session) LimitedSubjects(stream workloads.Stream, n int) []quota.Subject {
	if _, ok := s.Instances[0].(strategies.LimitSetter); !ok {
		return nil
	}
	out := make([]quota.Subject, n)
	for i := range out {
		out[i] = quota.Subject(stream.Name(uint32(i)))
	}
	return out
}

// setAtOnce is how many subjects' limits are set by one call.
const setAtOnce = 10_000

// SetLimit has the strategy change the limit of subjects to that of p, through each of
// the given instances, if it keeps limits at all.
func (s *Session) SetLimit(ctx context.Context, p *quota.Policy, subjects []quota.Subject, instances ...int) error {
	for _, i := range instances {
		l, ok := s.Instances[i].(strategies.LimitSetter)
		if !ok {
			return nil
		}
		for some := range slices.Chunk(subjects, setAtOnce) {
			if err := l.SetLimit(ctx, p, some); err != nil {
				return fmt.Errorf("set the limit of %d subjects to %d: %w", len(subjects), p.Limit, err)
			}
		}
	}
	return nil
}

// SetKills has callers killed as the text says: "0.01" for that share of them after their first
// command to a Redis, "0.01:2" after their second.
func (p *Plan) SetKills(text string) (err error) {
	share, after, counted := strings.Cut(text, ":")
	if p.KillShare, err = strconv.ParseFloat(share, 64); err == nil && counted {
		p.KillAfter, err = strconv.Atoi(after)
	}
	if err != nil || counted && p.KillAfter == 0 {
		return fmt.Errorf("%q is not of the form 0.01 or 0.01:2: the share of the callers, and after which of their commands", text)
	}
	return p.checkKills()
}

func (p *Plan) checkKills() error {
	if !(p.KillShare >= 0 && p.KillShare <= 1) || p.KillAfter < 0 || p.KillAfter > maxKillAfter {
		return fmt.Errorf("a share of %g of the callers is killed after their command %d: give a share from 0 to 1, and 1 to %d",
			p.KillShare, p.KillAfter, maxKillAfter)
	}
	return nil
}

// kills is what [Plan.SetKills] reads; "" if no caller is killed.
func (p *Plan) kills() string {
	if p.KillShare == 0 {
		return ""
	}
	return fmt.Sprintf("%g:%d", p.KillShare, p.KillAfter)
}

// Kills reports whether the caller of request i is to be killed. A nil plan kills none.
func (p *Plan) Kills(i int64) bool {
	return p != nil && p.KillShare > 0 && float64(seed.At(seed.Stream(p.Seed, seed.Kills), uint64(i))>>11)/(1<<53) < p.KillShare
}

// cannotKill is why callers of a strategy cannot be killed, or its counters be overwritten, as planned, or nil.
func (p *Plan) cannotKill(s strategies.Selection, mode strategies.Mode) error {
	switch {
	case len(p.Overwrites) > 0 && len(s.RedisNeeds()) == 0:
		return errors.New("it has no counter in a Redis that could be overwritten")
	case p.KillShare == 0:
	case len(s.RedisNeeds()) == 0:
		return errors.New("its callers send no command to a Redis after which they could be killed")
	case s.Client == strategies.AutoPipeline:
		return errors.New("its client sends the commands of several callers together, so that none can be killed after its own")
	case s.Foreign && mode == strategies.ModeSimulate:
		return errors.New("callers of foreign code cannot be killed in virtual time: measure it")
	}
	return nil
}
