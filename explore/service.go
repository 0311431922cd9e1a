package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// defaultRequest is the path of a request to a service if none is given.
const defaultRequest = "/?key={subject}"

// otherThanOrder is why schedules of a service do not repeat.
const otherThanOrder = "it depends on more than the order of its commands, e.g. on its clock, which " +
	"--service-clock stops"

// ErrAfterAnswer says that a service sends commands that its answer does not wait for: no search can order them.
var ErrAfterAnswer = service.ErrAfterAnswer

// ofServices are the properties that can be seen of a service and its Redis.
var ofServices = []Property{Leak, FalseReject, TTL, Stuck}

// ofServiceFaults are the faults that can befall a service.
var ofServiceFaults = slices.DeleteFunc(slices.Clone(engine.Faults), func(fault quota.Fault) bool {
	return fault == quota.FaultRetry
})

// ofSharedFaults are those of them that can befall an instance with several clients.
var ofSharedFaults = []quota.Fault{quota.FaultCrash, quota.FaultEviction, engine.FaultScriptFlush}

// fitService reports why a service cannot be explored so.
func (c *Config) fitService(sel strategies.Selection) error {
	switch {
	case !sel.NeedsStore("service"):
		return fmt.Errorf("strategy %s asks no service of yours: name http, or leave the service out", sel.Name)
	case c.Redis != nil && (c.setup().Ticks() || c.From != 0):
		return errors.New("the clock of a Redis server cannot be moved: give --redis embedded, or leave out the fault " +
			"clock and time that passes")
	case c.Postgres != nil && (c.setup().Ticks() || c.ServiceClock != ""):
		return errors.New("the clock of a PostgreSQL server goes by itself: leave out --service-clock, the fault clock and " +
			"time that passes")
	case c.setup().Ticks() && c.Policy.Name == "" && !c.LearnWindow:
		return errors.New("what is right once time has passed depends on the window of the service: name it by --policy")
	case c.ServiceClock == "" && slices.ContainsFunc(c.Skew, func(duration time.Duration) bool { return duration != 0 }):
		return errors.New("the instances of a service have one clock: leave the skew out, or stop their clocks by " +
			"--service-clock")
	case slices.ContainsFunc(c.Skew, func(duration time.Duration) bool { return duration%time.Second != 0 }):
		return errors.New("the clocks of a service are set to seconds: give a skew of whole seconds")
	case slices.ContainsFunc(c.Scripts, Script.Operates):
		return errors.New("a service keeps its limit by itself: leave limit out of the script")
	case c.Request != "" && !strings.HasPrefix(c.Request, "/"):
		return fmt.Errorf("request %q: write a path that begins with /, e.g. %s", c.Request, defaultRequest)
	case c.Counter != "" && !strings.Contains(c.Counter, "{subject}"):
		return fmt.Errorf("counter %q: every subject would have the same key: write {subject} where it belongs, e.g. "+
			"limit:{subject}", c.Counter)
	case c.Counter == "" && slices.Contains(c.Properties, Drift) && len(c.Properties) < len(properties):
		return errors.New("property drift needs a counter: name its key by --counter, e.g. --counter 'limit:{subject}'")
	case c.Request != "" && !strings.Contains(c.Request, "{subject}") && sel.Options["subject-header"] == "":
		return fmt.Errorf("request %q: every subject would be the same to the service: write {subject} where it belongs, "+
			"e.g. %s, or name a header by subject-header", c.Request, defaultRequest)
	}
	if err := c.fitServiceClock(); err != nil {
		return err
	}
	if _, ok := c.Redis.(*redis.Client); !ok && c.Redis != nil {
		return errors.New("a service is explored on one Redis server: give a URL of one by --redis")
	}
	if err := c.fitServiceFaults(); err != nil {
		return err
	}
	for _, property := range c.Properties {
		if !slices.Contains(ofServices, property) && property != Drift && len(c.Properties) < len(properties) {
			return fmt.Errorf("property %s cannot be seen of a service: give some of %v", property, ofServices)
		}
	}
	return nil
}

// fitServiceClock reports why the service's clock cannot be stopped at the moment that is given.
func (c *Config) fitServiceClock() error {
	at, err := c.clock()
	switch {
	case err != nil:
		return fmt.Errorf("clock %q: write a moment such as 2026-01-01 00:00:00", c.ServiceClock)
	case c.From != 0 && c.ServiceClock != "" && c.From != at.Sub(engine.Start):
		return errors.New("the search begins at the moment of --service-clock: leave out that it begins at another")
	}
	return nil
}

// fitServiceFaults reports a fault that cannot befall the service.
func (c *Config) fitServiceFaults() error {
	shared := c.Instances > 0 && c.Instances < cmp.Or(c.Clients, 2)
	for _, fault := range c.Faults {
		if !slices.Contains(ofServiceFaults, fault) {
			return fmt.Errorf("fault %s cannot befall a service: leave it out (a retry is the service's own, after a lost "+
				"reply)", fault)
		}
		if shared && !slices.Contains(ofSharedFaults, fault) {
			return fmt.Errorf("fault %s is not tried on clients that may share a connection: leave the fault or the "+
				"instances out", fault)
		}
	}
	return nil
}

// unreached are faults in which a service does not reach its Redis.
var unreached = []quota.Fault{quota.FaultLostReply, quota.FaultOutage, engine.FaultTimeout, engine.FaultRestart}

// declaredOpen reports whether the service is declared to admit what it cannot ask its Redis, and that may happen: then
// a leak is no finding.
func (c *Config) declaredOpen(sel strategies.Selection) bool {
	open := sel.Down != nil && sel.Down(sel.Options) == "open"
	return open && slices.ContainsFunc(c.Faults, func(fault quota.Fault) bool { return slices.Contains(unreached, fault) })
}

// LeftOut is a fault that is not tried, and why.
type LeftOut struct {
	Fault quota.Fault
	Why   error
}

// AllFaults are all faults that a search of the service can have, and those that it cannot.
func (c Config) AllFaults(sel strategies.Selection) (all []quota.Fault, left []LeftOut) {
	for _, fault := range engine.Faults {
		one := c
		one.Faults = []quota.Fault{fault}
		_, err := one.Complete(sel)
		switch {
		case fault == engine.FaultTimeout:
			left = append(left, LeftOut{fault, errors.New("it takes a client of Redis with a short timeout: name the fault")})
		case err != nil:
			left = append(left, LeftOut{fault, err})
		default:
			all = append(all, fault)
		}
	}
	return all, left
}

// setServiceDefaults counts requests. If the limit is that of the service, so many units are used at the start that the
// last request does not fit.
func (c *Config) setServiceDefaults(sel strategies.Selection) {
	if c.Policy.Name == "" {
		c.Policy = example.As(quota.Rolling)
		if c.LearnWindow {
			c.Policy.Name = "requests-per-time-to-live"
		}
	}
	if len(c.Properties) == len(properties) {
		c.Properties = slices.Clone(ofServices)
		if c.declaredOpen(sel) {
			c.Properties = slices.DeleteFunc(c.Properties, func(property Property) bool { return property == Leak })
		}
		if c.Counter != "" {
			c.Properties = append(c.Properties, Drift)
		}
	}
	c.Request = cmp.Or(c.Request, defaultRequest)
	if at, _ := c.clock(); c.Redis == nil && c.ServiceClock != "" { // which the Redis in memory has too
		c.From = at.Sub(engine.Start)
	}
	// All databases of a server have one set of scripts.
	if c.Redis != nil && (slices.Contains(c.Faults, engine.FaultScriptFlush) ||
		slices.Contains(c.Faults, engine.FaultRestart)) {
		c.Workers = 1
	}
	if c.Limit > 0 && c.Used == 0 && len(c.Scripts) == 0 {
		c.Used = max(0, c.Limit-int64(c.Clients)+1)
	}
}

// windowed is http with the windows that begin on a clock, which is known of a Redis in memory.
func (c *Config) windowed(sel strategies.Selection) strategies.Selection {
	if c.Service != "" && c.Redis == nil {
		meta := *sel.Meta
		meta.Kinds = append(slices.Clone(meta.Kinds), quota.Fixed, quota.CalendarHour, quota.CalendarDay, quota.CalendarMonth)
		sel.Meta = &meta
	}
	return sel
}

// clock is the moment of ServiceClock.
func (c *Config) clock() (time.Time, error) {
	if c.ServiceClock == "" {
		return time.Time{}, nil
	}
	return time.ParseInLocation(service.ClockLayout, c.ServiceClock, time.Local)
}

func (c *Config) command() service.Command {
	client, _ := c.Redis.(*redis.Client)
	at, _ := c.clock()
	return service.Command{
		Clock: at, ClockIfAny: c.clockIfAny, Known: c.further, LimitNamed: c.limitNamed, Line: c.Service,
		Request: c.Request, Counter: c.Counter,
		Env: c.Environment, Redis: client, Postgres: c.Postgres,
	}
}

// serviceFlags are those that say what the service is, without the passwords of URLs; empty for none.
func (c *Config) serviceFlags() string {
	if c.Service == "" {
		return ""
	}
	quoted := func(flag, value string) string {
		return " --" + flag + " '" + strings.ReplaceAll(redact.URLs(value), "'", `'\''`) + "'"
	}
	text := quoted("service", c.Service)
	if c.Redis == nil {
		text += " --redis embedded"
	}
	if c.Postgres != nil {
		text += " --postgres auto"
	}
	if c.Request != defaultRequest {
		text += quoted("request", c.Request)
	}
	if c.ServiceClock != "" {
		text += quoted("service-clock", c.ServiceClock)
	}
	if c.Counter != "" {
		text += quoted("counter", c.Counter)
	}
	for _, e := range c.Environment {
		text += quoted("env", e)
	}
	return text[1:]
}
