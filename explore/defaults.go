package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// example is a policy for any strategy, in the first of these kinds that it serves.
var (
	example = quota.Policy{
		Name: "10-requests-per-fixed-1m", Limit: 10, Unit: "requests",
		Window: quota.Window{Kind: quota.Fixed, Length: time.Minute},
	}
	exampleKinds = []quota.Kind{
		quota.Fixed, quota.Rolling, quota.FirstRequest, quota.Bucket,
		quota.CalendarHour, quota.CalendarDay, quota.CalendarMonth, quota.Standing,
	}
)

// ExamplePolicy is a policy that the strategy serves, of ten requests, in a minute if its
// kind has a length. The error says why it serves none of its kinds.
func ExamplePolicy(meta *strategies.Meta) (quota.Policy, error) {
	var why error
	for _, kind := range exampleKinds {
		policy := example.As(kind)
		err := meta.ServesPolicy(&policy)
		if err == nil {
			return policy, nil
		}
		if why == nil || slices.Contains(meta.Kinds, kind) {
			why = err
		}
	}
	return quota.Policy{}, why
}

// ownPolicy is a policy that the strategy's own record names, or the first registered one that
// it serves, or an example. The race of the racy control is one of requests, whatever its record counts.
func ownPolicy(meta *strategies.Meta) (quota.Policy, error) {
	var first *quota.Policy
	for _, policy := range quota.Policies() {
		if meta.ServesPolicy(&policy) != nil {
			continue
		}
		own := policy.Source != "" && strings.HasPrefix(meta.Source, policy.Source)
		if meta.Control == strategies.ControlRacy {
			own = policy.Unit == example.Unit
		}
		if own {
			return policy, nil
		}
		if first == nil {
			first = &policy
		}
	}
	if first == nil {
		policy, err := ExamplePolicy(meta)
		if err != nil {
			like := example
			if len(meta.Kinds) > 0 {
				like = example.As(meta.Kinds[0])
			}
			err = fmt.Errorf("strategy %s serves none of the usual policies (%w): give one that it serves, with other "+
				"figures than in quotabench explore %s --policy %q", meta.Name, err, meta.Name, like.Text())
		}
		return policy, err
	}
	return *first, nil
}

// defaultScripts are what clients do under a policy, of which limit is searched, 0 for
// whatever the scripts ask for. The first client takes one unit, and gives it back if
// that is what the policy is about. The others take two if the policy's requests differ
// in what they cost. The race of the racy control is between takes of one unit, and
// nothing is put in its way.
func defaultScripts(meta *strategies.Meta, policy *quota.Policy, limit int64) []Script {
	first := Script{{Kind: Take, Units: 1}}
	others := Script{{Kind: Take, Units: 1}}
	if meta.Control == strategies.ControlRacy {
		return []Script{others}
	}
	if meta.GivesBack && policy.Window.Kind == quota.Standing {
		first = append(first, Action{Kind: Refund})
	}
	if len(policy.Costs) > 0 && slices.Min(policy.Costs) < slices.Max(policy.Costs) && limit != 1 &&
		meta.ServesUnits(policy, 2) {
		others[0].Units = 2
	}
	if slices.Equal(first, others) {
		return []Script{others}
	}
	return []Script{first, others}
}

// roomForAllButOne is the limit at which the last of the takes does not fit
// next to the units that are in use already.
func (c *Config) roomForAllButOne() int64 {
	var asked, least int64
	for i := range c.Clients {
		for _, action := range c.setup().Script(i) {
			if action.Kind != Take {
				continue
			}
			asked += action.Units
			if least == 0 || action.Units < least {
				least = action.Units
			}
		}
	}
	return c.Used + max(asked-least, least, 1)
}

// passing is a search in which time passes between calls.
type passing struct {
	policy  string // as [quota.ParsePolicy] reads it; not used if one is given
	limit   int64
	scripts string // one per client
	times   int    // of the clock's ticks, which come once more; 0 for the default
	from    time.Duration
}

// The moments at which such searches begin, in addition to a whole second: after a part of a second and of a
// millisecond, and just before a day ends, and with it a second and most windows. After half of a second and a half the
// microseconds have a leading zero: who drops it takes 1.098457 for 1.98457.
const (
	odd     = 598_457 * time.Microsecond
	dayEnds = 13*time.Hour + 30*time.Minute - 1_500*time.Microsecond
)

// passings are those searches per kind of window. A unit flows into a bucket once per
// second, or in a number of seconds that is not whole; windows are ten seconds long, or not
// whole seconds. One caller asks again after the limit was reached, gives a unit back, asks for more
// than one unit if that is served, or comes at the same time as another.
var passings = map[quota.Kind][]passing{
	quota.Bucket: {
		{"1 request refilling 1 per 1s", 1, "take,take,take", 0, 0},
		{"1 request refilling 1 per 1s", 1, "take,take,take", 0, odd},
		{"1 request refilling 2 per 3s", 1, "take,take,take", 0, dayEnds},
		{"2 requests refilling 1 per 1s", 2, "take,take,take,take", 2, 0},
		{"2 requests refilling 1 per 1s", 2, "take,take=2,take", 0, odd},
		{"1 request refilling 1 per 1s", 1, "take;take", 0, 0},
	},
	// A store may end such a window a millisecond late, so its first rejection is no finding: a second request shows a
	// window that is too long.
	quota.FirstRequest: append(windows("first-request "),
		passing{"2 requests per first-request 500ms", 2, "take,take,take", 0, 0}),
	quota.Fixed:   windows("fixed "),
	quota.Rolling: windows("rolling "),
	// What is under way does not end with time: a key that expires is one that forgets it.
	quota.Standing: {
		{"1 request at a time", 1, "take,take", 0, 0},
		{"2 requests at a time", 2, "take,take;take", 0, odd},
		{"1 request at a time", 1, "take,refund;take", 0, 0},
		{"2 requests at a time", 2, "take,refund,take;take", 0, 0},
	},
	// The lengths of the others are none of the policy's.
	quota.CalendarHour:  windows("calendar hour"),
	quota.CalendarDay:   windows("calendar day"),
	quota.CalendarMonth: windows("calendar month"),
}

// onceForTumbling are the scripts that are searched under the first kind of tumbling window alone. The others differ
// in where a window ends, which the shorter scripts meet.
var onceForTumbling = []string{"take,take,take,take", "take,refund;take", "take,take;take;take"}

func windows(kind string) []passing {
	of := func(n, length string) string {
		if strings.HasPrefix(kind, "calendar") {
			length = ""
		}
		return n + " per " + kind + length
	}
	return []passing{
		{of("1 request", "10s"), 1, "take,take,take", 0, 0},
		{of("1 request", "10s"), 1, "take,take,take", 0, odd},
		{of("2 requests", "10s"), 2, "take,take,take", 0, dayEnds},
		{of("2 requests", "10s"), 2, "take,take,take,take", 0, odd},
		{of("1 request", "500ms"), 1, "take,take,take", 0, 0},
		{of("1 request", "1500ms"), 1, "take,take,take", 0, odd},
		{of("2 requests", "10s"), 2, "take,take=2,take", 0, 0},
		{of("2 requests", "10s"), 2, "take,refund,take,take", 0, odd},
		{of("1 request", "10s"), 1, "take;take", 0, 0},
		{of("1 request", "10s"), 1, "take,refund;take", 0, 0},
		{of("2 requests", "10s"), 2, "take,take;take;take", 1, odd},
	}
}

// oneInstant is where the clocks of a service are stopped if no moment is given.
const oneInstant = "2026-01-01 00:00:00"

// faulty are searches with faults, the fewest first, and what they look for: what is
// guaranteed although these happen, keys that never expire, and callers that are stuck.
var faulty = []struct {
	faults []quota.Fault
	ticks  int // of the clock; 0 for the default
	rounds int // of jobs, besides those that are due once the clock has ticked; 0 for the default
}{
	{faults: []quota.Fault{quota.FaultCrash}},
	{faults: []quota.Fault{quota.FaultLostReply, quota.FaultRetry}},
	{faults: []quota.Fault{quota.FaultClock}, ticks: 1, rounds: -1},
	{faults: []quota.Fault{quota.FaultClock}},
}

// Searches are those that the command makes of a strategy if it is told nothing, or nothing but a policy: cfg itself,
// and further ones for the adapter of a library ([strategies.Library]), and for any strategy under a policy that was
// given.
//
// First comes what needs no fault: the callers of cfg, three of them, and time that passes between calls, from several
// moments and with several limits, under the policy given or under several of each kind that the library serves. What a
// library does within a window says little about the next one, and rates that are no whole number of units per second
// are where such code rounds. Then come searches with a set of faults each, of libraries alone. Other strategies are
// described by whoever wrote them, and searched so if that is asked for. A library without a store is searched on one
// instance: that several admit several limits is no news.
//
// If callers of one instance meet in its memory ([strategies.Execution.SharesMemory]), the second search is cfg with
// all callers on one instance ([Config.Placed]).
//
// A service is searched for keys that never expire, too, if its processes end in the middle of a subject's first
// request, or of one that is rejected, for leaks while Redis
// cannot be reached, loses a reply or its scripts, for instances that do not work once that is over, and for leaks
// while the clocks of all processes stand at one instant, and while thousands of other subjects ask.
// Then time passes between calls, on a Redis in memory with
// which the clocks of the processes move, if they can. Under a policy that was given, it is searched for leaks while a
// window ends, too. Without one, see [Process.LearnWindow]. If a request can tell what it costs, requests for more than
// the limit are made, too.
//
// Each search claims what it claims for its own policy and limit. Those that the strategy does not serve are left out.
func Searches(sel strategies.Selection, cfg Config) []Config {
	library := sel.Form == strategies.Library
	given := cfg.Policy.Name != ""
	if cfg.Service != "" {
		return cfg.ofService(sel)
	}
	if !library && !given || OnPostgres(sel) {
		return cfg.Placed(sel)
	}
	cfg.Instances = cmp.Or(cfg.Instances, countsAlone(sel))
	kinds := sel.Kinds
	if given {
		kinds = []quota.Kind{cfg.Policy.Window.Kind}
	}
	three := cfg
	three.Clients = 3
	further := []Config{three}
	tumbled := false
	for _, kind := range kinds {
		if sel.Reset != strategies.ResetsNever || kind == quota.Standing { // otherwise it serves within one window alone
			further = append(further, cfg.whileTimePasses(kind, tumbled)...)
			tumbled = tumbled || kind.Tumbling()
		}
	}
	if library {
		further = append(further, cfg.withUsualFaults()...)
	}
	out := cfg.Placed(sel)
	for _, config := range further {
		if config.served(sel) {
			out = append(out, config)
		}
	}
	return out
}

// countsAlone is 1 for a library whose instances count for themselves: that several admit several limits is no news.
func countsAlone(sel strategies.Selection) int {
	if sel.Form == strategies.Library && (sel.PerProcess || len(sel.Needs) == 0) {
		return 1
	}
	return 0
}

// whileTimePasses are the searches of a kind of window in which time passes between calls. tumbled is set if those of
// a tumbling window are made already.
func (c Config) whileTimePasses(kind quota.Kind, tumbled bool) (out []Config) {
	seen := map[string]bool{} // a calendar, and a policy that is given, have one length
	for _, passing := range passings[kind] {
		if tumbled && kind.Tumbling() && slices.Contains(onceForTumbling, passing.scripts) {
			continue
		}
		config := passing.config(c)
		key := fmt.Sprintf("%s %d %s %v", config.Policy.Name, passing.limit, passing.scripts, passing.from)
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, config)
	}
	return out
}

// withUsualFaults are the searches of a library with faults. They look for what must hold in spite of these.
func (c Config) withUsualFaults() (out []Config) {
	properties := slices.DeleteFunc(chosen(c.Properties), func(property Property) bool {
		return property != Guarantee && property != TTL && property != Stuck
	})
	if len(properties) == 0 {
		return nil
	}
	for _, further := range faulty {
		config := c
		config.Faults = further.faults
		config.Ticks = further.ticks
		config.JobRounds = cmp.Or(config.JobRounds, further.rounds)
		config.Properties = slices.Clone(properties)
		out = append(out, config)
	}
	return out
}

// served reports whether the strategy serves the policy, the limit and the units of a search.
func (c Config) served(sel strategies.Selection) bool {
	if _, err := c.Complete(sel); err != nil {
		return false
	}
	for _, script := range c.Scripts {
		for _, action := range script {
			if action.Units > 1 && !sel.ServesUnits(&c.Policy, action.Units) {
				return false
			}
		}
	}
	return true
}

// ofService are the searches of a service.
func (c Config) ofService(sel strategies.Selection) []Config {
	further := c
	further.further = true
	stopped := further
	stopped.ServiceClock = oneInstant
	out := c.Placed(sel)
	add := func(config Config, properties ...Property) {
		config.Properties = slices.DeleteFunc(properties, func(property Property) bool {
			return !slices.Contains(chosen(c.Properties), property)
		})
		if _, err := config.Complete(sel); err == nil && len(config.Properties) > 0 {
			out = append(out, config)
		}
	}
	if c.Limit > 1 { // the first search begins with units in use
		add(further.fresh(), TTL)
	}
	add(further.killed(), TTL)
	add(further.killedWhenFull(), TTL)
	for _, fault := range passingFaults {
		befallen := further.befallen(fault)
		if befallen.declaredOpen(sel) {
			add(befallen, Stuck)
		} else {
			add(befallen, Leak, Stuck)
		}
	}
	if c.ServiceClock == "" {
		add(stopped, Leak)
	}
	add(further.late(), Leak)
	if strings.Contains(c.Request, "{units}") {
		add(further.oversized(), Leak)
	}
	add(further.neighbour(), Leak, FalseReject)
	add(further.crowded(), Leak)
	waits := further.waiting()
	if waits.LearnWindow {
		add(waits, FalseReject)
	} else {
		add(waits, Leak, FalseReject, TTL)
	}
	if c.Policy.Name != "" && c.Limit != 1 && c.Limit <= bounds.MaxSpread {
		add(further.spread(), Leak, FalseReject)
	}
	return out
}

// late is the search of a service in which time passes within a request: what was given back too late is missing at the
// second one.
func (c Config) late() Config {
	c.Faults = []quota.Fault{quota.FaultClock}
	c.Redis = nil
	c.leaveOne()
	take := Action{Kind: Take, Units: 1}
	c.Scripts = []Script{{take, take}}
	return c
}

// fresh is the search of a service in which each client is the first of its subject, whatever the limit.
func (c Config) fresh() Config {
	c.Scripts = []Script{{{Kind: Take, Units: 1}}} // without one, units would be used at the start
	return c
}

// killed is the search of a service of which a process ends during the first request of a subject. Another client would
// only start more processes.
func (c Config) killed() Config {
	c = c.fresh()
	c.Faults = []quota.Fault{quota.FaultCrash}
	c.Clients = 1
	c.Instances = 1
	return c
}

// killedWhenFull is the same during a request that is rejected.
func (c Config) killedWhenFull() Config {
	c = c.killed()
	c.Limit = cmp.Or(c.Limit, 1)
	c.Used = c.Limit
	return c
}

// leaveOne leaves room for one request: the limit is 1, or the one that was named, of which all other units are used
// at the start.
func (c *Config) leaveOne() {
	c.Limit = cmp.Or(c.Limit, 1)
	c.Used = c.Limit - 1
}

// passingFaults are those of a service's Redis after which both go on as before.
var passingFaults = []quota.Fault{quota.FaultLostReply, quota.FaultOutage, engine.FaultScriptFlush}

// befallen is the search of a service with such a fault: what one client is told meanwhile, and afterwards. Scripts are
// taken from a Redis in memory: those of a server are of all its users.
func (c Config) befallen(fault quota.Fault) Config {
	take := Action{Kind: Take, Units: 1}
	c.Faults = []quota.Fault{fault}
	if fault == engine.FaultScriptFlush {
		c.Redis = nil
	}
	c.leaveOne()
	c.Clients = 1
	c.Instances = 1
	c.Scripts = []Script{{take, take}}
	return c
}

// oversized is the search of a service in which one client asks for more than the limit, when nothing is used and when
// a unit is.
func (c Config) oversized() Config {
	c.Limit = cmp.Or(c.Limit, 2)
	c.Used = 0
	c.Clients = 1
	c.Instances = 1
	large := Action{Kind: Take, Units: c.Limit + 1}
	c.Scripts = []Script{{large, {Kind: Take, Units: 1}, large}}
	return c
}

// neighbour is the search of a service in which two subjects ask in turn, of which one has a name that begins with the
// other's: none takes the other's units or gives them back.
func (c Config) neighbour() Config {
	c.leaveOne()
	c.Clients = 1
	c.Instances = 1
	take := Action{Kind: Take, Units: 1}
	other := Action{Kind: Take, Units: 1, Other: 1}
	c.Scripts = []Script{{take, other, take, other}}
	return c
}

// crowded is the search of a service in which thousands of other subjects ask once one has used its limit. Time stands
// as far as it can, which it does not on a PostgreSQL server: what it gives back is no finding.
func (c Config) crowded() Config {
	c.leaveOne()
	c.Redis = nil
	c.Clients = 1
	c.Instances = 1
	take := Action{Kind: Take, Units: 1}
	others := Action{Kind: Take, Units: 1, Other: engine.Many}
	c.Scripts = []Script{{take, others, take}}
	if c.ServiceClock == "" && c.Postgres == nil {
		c.ServiceClock = oneInstant
		c.clockIfAny = true
	}
	return c
}

// waiting is the search of a service in which time passes between the calls of one client.
func (c Config) waiting() Config {
	take := Action{Kind: Take, Units: 1}
	c.Redis = nil
	c.leaveOne()
	c.Clients = 1
	c.Instances = 1
	c.Scripts = []Script{{take, take, take}}
	c.Passes = true
	c.LearnWindow = c.Policy.Name == ""
	if c.ServiceClock == "" {
		c.ServiceClock = oneInstant
		c.clockIfAny = true
	}
	return c
}

// spread is the search of a service in which requests come in different parts of a window: with a limit of one, a
// window that begins at a request is like one that moves.
func (c Config) spread() Config {
	limit := cmp.Or(c.Limit, 2)
	c = c.waiting()
	c.Limit = limit
	c.Used = 0
	take := Action{Kind: Take, Units: 1}
	c.Scripts = []Script{slices.Repeat(Script{take}, int(2*limit))}
	return c
}

// Placed is the search itself, with as many instances as were chosen, or one for each client.
// If none were chosen and callers of one instance meet in its memory, a search with all callers
// on one instance follows. Three of them, if no number was chosen: one is under way, one waits
// for it, and one finds what they have left. A library whose instances count for themselves has one, unless a number
// was chosen.
func (c Config) Placed(sel strategies.Selection) []Config {
	c.Instances = cmp.Or(c.Instances, countsAlone(sel))
	if !sel.SharesMemory || c.Instances > 0 || c.Clients == 1 || len(c.Skew) > 1 {
		return []Config{c}
	}
	one := c
	one.Clients = cmp.Or(c.Clients, 3)
	one.Instances = 1
	return []Config{c, one}
}

// chosen are the properties that a search looks for.
func chosen(given []Property) []Property {
	if len(given) == 0 {
		return Properties()
	}
	return slices.Clone(given)
}

// config is the search, under the policy of cfg if it has one.
func (p *passing) config(cfg Config) Config {
	var err error
	if cfg.Policy.Name == "" {
		cfg.Policy, err = quota.ParsePolicy(p.policy)
		if err != nil {
			panic(err) // a text of this file
		}
		cfg.Policy.Unit = "requests" // of a limit of one it is "request"
	}
	cfg.Scripts, err = ParseScripts(p.scripts)
	if err != nil {
		panic(err)
	}
	cfg.Clients = len(cfg.Scripts)
	cfg.Limit = p.limit
	cfg.Times = p.times
	cfg.Instances = min(cfg.Instances, cfg.Clients)
	cfg.Passes = true
	cfg.From = p.from
	if window := cfg.Policy.Window; p.from == dayEnds && window.Kind.Tumbling() { // its own end is nearer, or later
		cfg.From = window.At(engine.Start).End.Sub(engine.Start) + dayEnds%time.Second - time.Second
	}
	return cfg
}
