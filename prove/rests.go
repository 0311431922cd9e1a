package prove

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
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
	single := &script{units: harness.LeastCost(&s.policy)}
	for _, rest := range times {
		single.afterRests(rest, longest, 1, 0)
	}
	says := fmt.Sprintf("rests of up to %s", quota.LengthText(longest))
	out := []*scene{s.scripted(says+" after each request", single, s.policy, began)}
	if s.crossed.Limit > mostLimit {
		return out
	}
	all := &script{units: harness.LeastCost(&s.crossed)}
	for _, rest := range times {
		all.afterRests(rest, longest, s.tooMany(&s.crossed), s.apart(&s.crossed))
	}
	says += " after the limit was used up" + s.lowered()
	return append(out, s.scripted(says, all, s.crossed, began))
}

// desertedFor is how long a scene rests at least after callers have died: longer than any usual lease.
const desertedFor = 24 * time.Hour

// deserted is the scene in which the callers of a standing policy die with all that they hold. Another one comes long
// after the life of their requests, and is admitted. See [quota.Request.Life].
func (s *simulation) deserted() []*scene {
	policy := s.crossed
	if policy.Window.Kind != quota.Standing || !s.sel.GivesBack || policy.Limit > mostLimit {
		return nil
	}
	script := &script{units: harness.LeastCost(&policy)}
	subject := script.subject()
	died := script.ask(subject, time.Second, policy.Limit/script.units, s.apart(&policy))
	for i := range script.requests {
		script.requests[i].Fate = workloads.FateAbandon
	}
	rest := max(desertedFor, 2*harness.DefaultLife, 2*policy.Hold)
	script.ask(subject, died+rest, 1, 0)
	script.requests[len(script.requests)-1].Fate = workloads.FateFail
	says := fmt.Sprintf("callers that die and hold the whole limit, and one that asks %s later", quota.LengthText(rest))
	out := s.scripted(says+s.lowered(), script, policy, began)
	out.judge = s.judgeDeserted
	return []*scene{out}
}

// judgeDeserted looks whether the last request was rejected. When a store frees what a dead caller held is not told
// exactly, so the oracle says nothing of it.
func (s *simulation) judgeDeserted(p *played) (wrong, told string, err error) {
	wrong, told, err = s.judge(p)
	declared := slices.ContainsFunc(s.sel.Guarantee, func(clause quota.Clause) bool {
		return clause.Property == quota.PropertyFalseReject
	})
	if wrong != "" || err != nil || declared {
		return wrong, told, err
	}
	file, err := oracle.OpenHistory(filepath.Join(p.config.Archive, p.run.HistoryName()))
	if err != nil {
		return "", "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	var last oracle.Event
	for events, err := range file.Subjects() {
		if err != nil {
			return "", "", err
		}
		for _, event := range events {
			if event.Kind == oracle.Take && event.Call > last.Call {
				last = event
			}
		}
	}
	if last.Outcome == oracle.Rejected {
		wrong = "STRANDED: the last request was rejected, although the life of all others was over: Request.Life says how " +
			"long units are held at most, and quota.MayReject declares that they are held for ever\n"
	}
	return wrong, "", nil
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
	return policy.Limit/harness.LeastCost(policy) + 2
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
	script := &script{units: harness.LeastCost(&policy)}
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
