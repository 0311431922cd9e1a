package prove

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// restTimes are how long subjects do not ask, next to multiples of a window.
var restTimes = []time.Duration{3 * time.Hour, 30 * time.Hour, 8 * 24 * time.Hour, 25 * 24 * time.Hour}

// restRounds is how often a subject rests.
const restRounds = 3

// rests are the scenes in which subjects ask again after hours, days and weeks: under the real limit after one request,
// and under one that few requests use up after that many.
func (s *simulation) rests() []*scene {
	if s.policy.Window.Kind == quota.Standing {
		return nil
	}
	times := s.restTimes()
	longest := times[len(times)-1]
	single := &script{units: s.policy.LeastCost()}
	for _, rest := range times {
		single.afterRests(rest, longest, 1, 0)
	}
	says := fmt.Sprintf("rests of up to %s", quota.LengthText(longest))
	out := []*scene{s.scripted(says+" after each request", single, s.policy, began)}
	if s.crossed.Limit > mostLimit {
		return out
	}
	all := &script{units: s.crossed.LeastCost()}
	for _, rest := range times {
		all.afterRests(rest, longest, s.tooMany(&s.crossed), s.apart(&s.crossed))
	}
	says += " after the limit was used up" + s.lowered()
	return append(out, s.scripted(says, all, s.crossed, began))
}

// desertedFor is how long a scene rests at least after callers have died: longer than any usual lease.
const desertedFor = 24 * time.Hour

// deserted are the scenes in which the callers of a standing policy die with all that they hold, and later within their
// requests, too. Another one comes long after the life of all requests, and is admitted. See [quota.Request.Life].
func (s *simulation) deserted() []*scene {
	policy := s.crossed
	if policy.Window.Kind != quota.Standing || !s.sel.GivesBack || policy.Limit > mostLimit {
		return nil
	}
	script := &script{units: policy.LeastCost()}
	subject := script.subject()
	script.fate = workloads.FateAbandon
	died := script.ask(subject, time.Second, policy.Limit/script.units, s.apart(&policy))
	rest := restOf(&policy)
	script.fate = workloads.FateFail
	script.ask(subject, died+rest, 1, 0)
	says := fmt.Sprintf("callers that die and hold the whole limit, and one that asks %s later", quota.LengthText(rest))
	out := s.scripted(says+s.lowered(), script, policy, began)
	out.judge = s.judgeDeserted
	return append([]*scene{out}, s.killed()...)
}

// restOf is longer than the life of any request under a standing policy.
func restOf(policy *quota.Policy) time.Duration {
	return max(desertedFor, 2*bounds.DefaultLife, 2*policy.Hold)
}

const (
	// killedSubjects ask for their limit so often, as many requests as mostKilled at most, and half of all die after each
	// of the first commands of a request. Most slots are lost then if one death loses one.
	killedSubjects = 8
	killedRounds   = 10
	mostKilled     = 10
	killedCommands = 3
)

// killed are the scenes in which callers die within their requests.
func (s *simulation) killed() (out []*scene) {
	policy := s.crossed
	policy.Limit = min(policy.Limit, mostKilled*policy.LeastCost())
	if len(s.sel.RedisNeeds()) == 0 || s.sel.Foreign || s.sel.ServesPolicy(&policy) != nil {
		return nil
	}
	rest := restOf(&policy)
	for after := range killedCommands {
		script := &script{units: policy.LeastCost(), fate: workloads.FateAbandon}
		for range killedSubjects {
			subject := script.subject()
			at := time.Second
			for range killedRounds {
				at = script.ask(subject, at, policy.Limit/script.units, longestApart) + 2*bounds.DefaultLife
			}
			script.ask(subject, at+rest, 1, 0)
		}
		says := fmt.Sprintf("callers of which half die after command %d of their requests, and some that ask %s later",
			after+1, quota.LengthText(rest))
		scene := s.scripted(says, script, policy, began)
		scene.config.Trouble = trouble.List{{
			Where: trouble.Where{Name: trouble.Callers, Instance: trouble.All},
			What:  trouble.What{Word: trouble.Killed, Share: 0.5, After: after + 1},
			When:  trouble.Always,
		}}
		scene.judge = judgeStranded
		out = append(out, scene)
	}
	return out
}

// judgeDeserted holds a run to the clauses, and looks for what is never free again.
func (s *simulation) judgeDeserted(p *played) (wrong, told string, err error) {
	wrong, told, err = s.judge(p)
	if wrong != "" || err != nil {
		return wrong, told, err
	}
	return judgeStranded(p)
}

// judgeStranded looks whether a request was rejected that came when the life of all others was over, unless a clause
// says how many may be. When a store frees what a dead caller held is not told exactly, so the oracle says nothing of
// it.
func judgeStranded(p *played) (wrong, told string, err error) {
	declared := slices.ContainsFunc(p.config.Strategies[0].Guarantee, func(clause quota.Clause) bool {
		return clause.Property == quota.PropertyFalseReject
	})
	if declared {
		return "", "", nil
	}
	file, err := oracle.OpenHistory(filepath.Join(p.config.Archive, p.run.HistoryName()))
	if err != nil {
		return "", "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	rest := int64(restOf(&p.config.Policy))
	for events, err := range file.Subjects() {
		if err != nil {
			return "", "", err
		}
		var before int64
		for _, event := range events {
			if event.Kind != oracle.Take {
				continue
			}
			if event.Outcome == oracle.Rejected && event.Call-before >= rest {
				return "STRANDED: a request was rejected, although the life of all others was over: Request.Life says how long " +
					"units are held at most, and quota.MayReject declares that they are held for ever\n", "", nil
			}
			before = event.Call
		}
	}
	return "", "", nil
}

// restTimes are those that are longer than a window and end within the simulated month, the longest last.
func (s *simulation) restTimes() []time.Duration {
	out := []time.Duration{s.length + s.length/2, 2*s.length + s.length/2}
	for _, rest := range restTimes {
		if rest > out[len(out)-1] && rest < s.duration {
			out = append(out, rest)
		}
	}
	return out
}

// afterRests adds a subject that asks so many times, rests, and does so again up to the longest rest.
func (s *script) afterRests(rest, longest time.Duration, times int64, apart time.Duration) {
	subject := s.subject()
	at := time.Second
	for range restRounds {
		if at > longest+time.Minute {
			return
		}
		at = s.ask(subject, at, times, apart) + rest
	}
}

// tooMany is how many requests use up a limit, and two that are rejected.
func (s *simulation) tooMany(policy *quota.Policy) int64 {
	return policy.Limit/policy.LeastCost() + 2
}

// apart is the time between two requests of which all together come within a small part of a window. If that is long
// enough, each is answered before the next one.
func (s *simulation) apart(policy *quota.Policy) time.Duration {
	const part = 10
	within := s.length / time.Duration(part*s.tooMany(policy))
	return max(min(within, longestApart), time.Microsecond)
}

// longestApart is far more than a request takes in virtual time.
const longestApart = 50 * time.Millisecond

// mostCalendar is the most requests in a window of the calendar's scenes.
const mostCalendar = 50

// calendar are the scenes around moments at which calendars are odd: the ends of summer time, a leap day and the turn
// of a year.
func (s *simulation) calendar() (out []*scene) {
	window := s.crossed.Window
	if !window.Kind.Tumbling() || window.Kind == quota.Fixed {
		return nil
	}
	policy := s.crossed
	lower := policy
	lower.Limit = mostCalendar
	if policy.Limit > mostCalendar && s.sel.ServesPolicy(&lower) == nil {
		policy = lower
	}
	for _, moment := range oddMoments(window) {
		out = append(out, s.around(moment, policy))
	}
	return out
}

// oddMoment is a moment at which a calendar is odd.
type oddMoment struct {
	says string
	at   time.Time
}

// oddMoments are those of a window's calendar.
func oddMoments(window quota.Window) []oddMoment {
	zone := window.Location
	if zone == nil {
		zone = time.UTC
	}
	out := []oddMoment{
		{"the turn of a year", time.Date(2027, time.January, 1, 0, 0, 0, 0, zone)},
		{"a leap day", time.Date(2028, time.February, 29, 12, 0, 0, 0, zone)},
	}
	at := began
	for range 2 {
		_, end := at.In(zone).ZoneBounds()
		if end.IsZero() || end.Sub(began) > 2*366*24*time.Hour {
			return out
		}
		_, before := end.Add(-1).Zone()
		_, after := end.Zone()
		says := "the beginning of summer time"
		if after < before {
			says = "the end of summer time"
		}
		out = append(out, oddMoment{says, end})
		at = end
	}
	return out
}

// around is a scene from three windows before a moment to three after it, or one month. A subject uses up each window
// when it has begun, and another one when it ends.
func (s *simulation) around(moment oddMoment, policy quota.Policy) *scene {
	window := policy.Window
	windows := int64(3)
	if window.Kind == quota.CalendarMonth {
		windows = 1
	}
	index := window.At(moment.at).Index
	start := window.Span(index - windows).Start
	script := &script{units: policy.LeastCost()}
	early := script.subject()
	late := script.subject()
	times := s.tooMany(&policy)
	apart := s.apart(&policy)
	for i := index - windows; i <= index+windows; i++ {
		span := window.Span(i)
		begins := span.Start.Sub(start)
		ends := span.End.Sub(start)
		middle := begins + (ends-begins)/2
		script.ask(early, begins+apart, times, apart)
		script.ask(early, middle, 1, 0)
		script.ask(late, middle, 1, 0)
		script.ask(late, ends-time.Duration(times+1)*apart, times, apart)
	}
	says := fmt.Sprintf("the windows around %s on %s", moment.says, moment.at.Format(time.DateOnly))
	return s.scripted(says, script, policy, start)
}
