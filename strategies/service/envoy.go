package service

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// NeedRatelimit is the store of the strategies whose code is in package ratelimit.
const NeedRatelimit strategies.Need = "ratelimit"

// asWindows is the value of a promise of windows on the clock.
const asWindows = "windows"

func init() {
	family.Register(files, strategies.Meta{
		Name:      codes.EnvoyRatelimit,
		Needs:     []strategies.Need{NeedRatelimit},
		Outside:   true,
		Kinds:     []quota.Kind{quota.Fixed, quota.CalendarHour, quota.CalendarDay, quota.Rolling},
		Serves:    servesUnit,
		Counts:    quota.CountsAttempts,
		Setup:     strategies.Setup{Suits: suitsStore, Elsewhere: strategies.WithFull},
		Options:   envoyOptions,
		Guarantee: envoyGuarantee,
	})
	family.Register(files, strategies.Meta{
		Name:      codes.GRPCBare,
		Needs:     []strategies.Need{NeedRatelimit},
		Outside:   true,
		Kinds:     quota.Kinds(),
		Counts:    quota.CountsNothing,
		About:     strategies.About{Control: strategies.ControlOpen},
		Setup:     strategies.Setup{Elsewhere: strategies.WithFull},
		Guarantee: []quota.Clause{family.NoFalseReject()},
	})
}

// envoyGuarantee is what fixed windows on the clock promise, or what options say of the service.
var envoyGuarantee = []quota.Clause{
	{
		Property: quota.PropertyLeak, Formula: "2 L, or L + may-leak",
		Bound: func(params quota.Params) int64 {
			if params.Options["may-leak"] == asWindows {
				return params.Limit
			}
			return promised(params.Options["may-leak"], params.Offered)
		},
	},
	{
		Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Rolling}, Formula: "0 of single units, or may-reject",
		Bound: func(params quota.Params) int64 {
			if params.Options["may-reject"] == asWindows && params.MaxCost <= 1 {
				return 0
			}
			return promised(params.Options["may-reject"], quota.Unbounded)
		},
	},
	{
		Property: quota.PropertyFalseReject, Kinds: []quota.Kind{quota.Fixed, quota.CalendarHour, quota.CalendarDay},
		Formula: "any, or may-reject",
		Bound:   func(params quota.Params) int64 { return promised(params.Options["may-reject"], quota.Unbounded) },
	},
}

const defaultDescriptors = "subject={subject}"

var envoyOptions = []quota.Option{
	{Name: "domain"},
	{Name: "descriptors", Default: defaultDescriptors, Check: checkDescriptors},
	{Name: "may-leak", Default: asWindows, Check: checkWindowsBound},
	{Name: "may-reject", Default: asWindows, Check: checkWindowsBound},
	{Name: "servers", Default: "1", Type: "int", Min: "1", Max: "8"},
	{Name: "cache", Default: "0", Type: "int", Min: "0", Max: "1000000000"},
	{Name: "timeout", Default: "0s", Type: "duration", Min: "0s"},
}

// Descriptors reads the option of that name: the entries of each descriptor, a key and a
// value each.
func Descriptors(text string) ([][][2]string, error) {
	var out [][][2]string
	for descriptor := range strings.SplitSeq(text, "|") {
		var entries [][2]string
		for entry := range strings.SplitSeq(descriptor, "+") {
			key, value, ok := strings.Cut(entry, "=")
			if !ok || key == "" || value == "" {
				return nil, fmt.Errorf("%q are no entries of a descriptor: write e.g. tenant=a+user={subject}", descriptor)
			}
			entries = append(entries, [2]string{key, value})
		}
		out = append(out, entries)
	}
	return out, nil
}

func checkDescriptors(text string) error {
	if _, err := Descriptors(text); err != nil {
		return err
	}
	if !strings.Contains(text, subject) {
		return errors.New("every subject would be the same to the service: put {subject} into a value, e.g. user={subject}")
	}
	return nil
}

func checkWindowsBound(text string) error {
	if text == asWindows {
		return nil
	}
	if checkBound(text) != nil {
		return errors.New("give windows, a number of requests from 0, or any")
	}
	return nil
}

// suitsStore refuses options of servers that are started if the service is the user's
// own, which needs a domain, and the reverse.
func suitsStore(options quota.Options, store any) error {
	s, ok := store.(interface{ Owned() bool })
	switch {
	case !ok:
		return nil
	case s.Owned() && (options["domain"] != "" || options["descriptors"] != defaultDescriptors):
		return errors.New("servers that are started have a domain and descriptors of their own: name a service with " +
			"--store ratelimit=grpc://HOST:PORT, or leave domain and descriptors out")
	case !s.Owned() && options["domain"] == "":
		return errors.New("needs the domain of the service's configuration: write " + codes.EnvoyRatelimit + ":domain=NAME")
	case !s.Owned() && (options["servers"] != "1" || options["cache"] != "0"):
		return errors.New("servers and cache are those of servers that are started: leave them out with --store ratelimit=URL")
	}
	return nil
}

// units of time of the protocol, which windows begin at.
var units = map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour",
	24 * time.Hour: "day"}

// UnitOf is the protocol's name of a policy's window; "" if it has none.
func UnitOf(policy *quota.Policy) string {
	switch policy.Window.Kind {
	case quota.CalendarHour:
		return units[time.Hour]
	case quota.CalendarDay:
		return units[24*time.Hour]
	}
	return units[policy.Window.RealLength()]
}

// most is the largest limit that is tested with ratelimit, which has 32 bits for it.
const most = 999_999_999

// servesUnit refuses policies that ratelimit cannot be configured for.
func servesUnit(policy *quota.Policy) error {
	if UnitOf(policy) == "" {
		return strategies.Unserved(policy, "ratelimit counts per second, minute, hour or day")
	}
	if policy.Limit > most {
		return strategies.Unserved(policy, "a limit above %d is not tested with ratelimit", most)
	}
	return nil
}
