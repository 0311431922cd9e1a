//go:build unix

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/quotabench/quotabench/internal/atomicfile"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results/plot"
)

// image is a plot of the page, by its file's name without the extension.
type image struct {
	name string
	plot *plot.Plot
}

// publish writes the page and its plots.
func (r *record) publish(root string) error {
	text, images, err := r.page()
	if err != nil {
		return err
	}
	for _, i := range images {
		png, err := i.plot.PNG()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(filepath.Join(root, imagesPath, i.name+".png"), png); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, pagePath)), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(root, pagePath), []byte(text))
}

// writer puts a page together.
type writer struct {
	strings.Builder
	images []image
}

func (w *writer) say(text string, args ...any) {
	fmt.Fprintf(w, text+"\n\n", args...)
}

func (w *writer) table(title []string, rows [][]string) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(title)
	rule := make([]string, len(title))
	for i := range rule {
		rule[i] = "---:"
	}
	line(rule)
	for _, row := range rows {
		line(row)
	}
	w.WriteString("\n")
}

func (w *writer) draw(name, title, note string, trends ...plot.Trend) error {
	p, err := plot.Trends(title, "each point is a process of its own; both axes are logarithmic", note, trends...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	w.images = append(w.images, image{name, p})
	w.say("![%s](images/%s.png)", title, name)
	return nil
}

func count(x float64) string { return format.Count(int64(math.Round(x))) }
func mebi(b float64) string  { return format.Digits(b/(1<<20)) + " MiB" }
func gibi(b float64) string  { return format.Digits(b/(1<<30)) + " GiB" }

// checksTake says what checks add to the peak of the set-up, in bytes each. Where they add
// nothing, the set-up had for a moment needed as much as they hold.
func checksTake(b float64) string {
	if b == 0 {
		return "the checks find room in what the set-up had needed for a moment"
	}
	return "each check takes " + bytesOf(b)
}

func bytesOf(b float64) string { return format.Digits(b) + " bytes" }

// hours renders a time for people.
func hours(s float64) string {
	switch {
	case s >= 2*86400:
		return format.Digits(s/86400) + " days"
	case s >= 2*3600:
		return format.Digits(s/3600) + " h"
	case s >= 120:
		return format.Digits(s/60) + " min"
	}
	return format.Digits(s) + " s"
}

// page writes the page: every figure is one of the record, or worked out from it.
func (r *record) page() (text string, images []image, err error) {
	w := new(writer)
	w.say("<!-- written by make growth from %s -->", recordPath)
	w.say("# How it grows")
	w.say("What a simulation or a search costs as it gets larger: where that is in proportion, where it is not, and why. Every figure is one of [the record](../%s) or worked "+
		"out from it; `make growth` measures it anew and writes this page. Each point is a process of its own, so that its memory is its own; the processor time is that of all "+
		"its threads, user and system. The machine was %s with %s and %s; other programs took %s of it.",
		recordPath, r.System, format.Plural(int64(r.Processors), "processor", "processors"), r.Go, format.Pct(100*r.Others))
	var sum summary
	for _, part := range []func(*writer, *summary) error{r.subjects, r.days, r.clients, r.script, r.states, r.hundredfold} {
		if err := part(w, &sum); err != nil {
			return "", nil, err
		}
	}
	return strings.TrimRight(w.String(), "\n") + "\n", w.images, nil
}

// summary is what the last part works with.
type summary struct {
	perS, bytesPerSubject, bytesPerCheck map[string]float64 // by strategy, at the most subjects
	largest                              float64            // subjects
	secondsPerDay                        float64
	decisionsPerDay                      float64
	bytesPerDecision                     float64
	largestPeak                          float64
	days                                 float64
	bytesPerState                        float64
	stateSeconds, statePower             float64 // processor time of the largest search, and how it grows
	statePeak, states                    float64
	clientFactor                         map[string]float64
	clientNames                          []string
}

func (r *record) subjects(w *writer, sum *summary) error {
	w.say("## Subjects")
	w.say("Simulations of 300,000 checks at 5,000 per virtual second, of as many subjects as there are.")
	sum.perS, sum.bytesPerSubject, sum.bytesPerCheck = map[string]float64{}, map[string]float64{}, map[string]float64{}
	var rates, peaks []plot.TrendLine
	var told []string
	for _, name := range r.lines(bySubjects) {
		all, err := r.crowds(name)
		if err != nil {
			return err
		}
		if len(all) < 2 {
			return fmt.Errorf("%s: %s has one point", bySubjects, name)
		}
		rate, peak := plot.TrendLine{Name: name}, plot.TrendLine{Name: name}
		var rows [][]string
		steady := all[0]
		falling := false
		for _, c := range all {
			rate.X, rate.Y = append(rate.X, c.busy.X), append(rate.Y, c.perSecond())
			peak.X, peak.Y = append(peak.X, c.busy.X), append(peak.Y, float64(c.busy.PeakBytes)/(1<<20))
			rows = append(rows, []string{count(c.busy.X), count(c.perSecond()), format.Digits(c.idle.CPUSeconds) + " s", mebi(float64(c.busy.PeakBytes)),
				format.Digits(float64(c.busy.Decisions) / c.busy.X)})
			if falling = falling || c.perSecond() < 0.8*all[0].perSecond(); !falling {
				steady = c
			}
		}
		rates, peaks = append(rates, rate), append(peaks, peak)
		w.say("`%s`:", name)
		w.table([]string{"subjects", "decisions per s of processor time", "start and set-up", "memory", "checks of a subject"}, rows)
		n := len(all)
		last, before := all[n-1], all[n-2]
		sum.perS[name], sum.largest = last.perSecond(), last.busy.X
		sum.bytesPerSubject[name] = max(0, perUnit(before.idle.X, float64(before.idle.PeakBytes), last.idle.X, float64(last.idle.PeakBytes)))
		sum.bytesPerCheck[name] = max(0, perUnit(float64(last.idle.Decisions), float64(last.idle.PeakBytes), float64(last.busy.Decisions), float64(last.busy.PeakBytes)))
		told = append(told, fmt.Sprintf("`%s` keeps four fifths of its speed up to %s subjects, and has %s of it at %s; from %s subjects on each further one takes %s to set up, and at %s %s.", name,
			count(steady.busy.X), format.Pct(100*last.perSecond()/all[0].perSecond()), count(last.busy.X), count(before.busy.X), bytesOf(sum.bytesPerSubject[name]), count(last.busy.X), checksTake(sum.bytesPerCheck[name])))
	}
	if err := w.draw("growth-subjects", "Speed and memory against subjects", "Decisions per second of processor time, start and set-up left out.",
		plot.Trend{Title: "speed", X: "subjects", Y: "decisions per s", Lines: rates}, plot.Trend{Title: "memory", X: "subjects", Y: "MiB", Lines: peaks}); err != nil {
		return err
	}
	w.say("%s", strings.Join(told, " "))
	w.say("**Why it is not flat.** The number of checks stays the same, so that with more subjects fewer checks find a subject that was asked for before. The first check of a subject makes its key, its " +
		"account in the oracle and its window; a later one finds them. The table's last column says how often a subject is asked for: where it falls below 1, most checks are first ones. Memory is flat as " +
		"long as the program itself is most of it, and in proportion to the subjects afterwards.")
	return nil
}

func (r *record) days(w *writer, sum *summary) error {
	all := r.of(byDays, "")
	if len(all) < 2 {
		return fmt.Errorf("the record has no days")
	}
	w.say("## Virtual days")
	w.say("`%s` at %d checks per virtual second over %s subjects.", all[0].Line, atRate, count(daySubjects))
	var rows [][]string
	wall, cpu, peak := plot.TrendLine{Name: "wall time"}, plot.TrendLine{Name: "processor time"}, plot.TrendLine{Name: all[0].Line}
	for _, p := range all {
		rows = append(rows, []string{count(p.X), count(float64(p.Decisions)), format.Digits(p.WallSeconds) + " s", format.Digits(p.CPUSeconds) + " s", count(p.X * 86400 / p.WallSeconds), mebi(float64(p.PeakBytes))})
		wall.X, wall.Y = append(wall.X, p.X), append(wall.Y, p.WallSeconds)
		cpu.X, cpu.Y = append(cpu.X, p.X), append(cpu.Y, p.CPUSeconds)
		peak.X, peak.Y = append(peak.X, p.X), append(peak.Y, float64(p.PeakBytes)/(1<<20))
	}
	w.table([]string{"virtual days", "decisions", "wall time", "processor time", "virtual seconds per second", "memory"}, rows)
	if err := w.draw("growth-days", "Time and memory against virtual days", "",
		plot.Trend{Title: "time", X: "virtual days", Y: "s", Lines: []plot.TrendLine{wall, cpu}}, plot.Trend{Title: "memory", X: "virtual days", Y: "MiB", Lines: []plot.TrendLine{peak}}); err != nil {
		return err
	}
	n := len(all)
	a, b, first := all[n-2], all[n-1], all[0]
	sum.days, sum.largestPeak = b.X, float64(b.PeakBytes)
	sum.secondsPerDay = perUnit(first.X, first.CPUSeconds, b.X, b.CPUSeconds)
	sum.decisionsPerDay = float64(b.Decisions) / b.X
	sum.bytesPerDecision = max(0, perUnit(float64(first.Decisions), float64(first.PeakBytes), float64(b.Decisions), float64(b.PeakBytes)))
	w.say("From %s to %s days processor time grows as days to the power of %.2f, and memory to the power of %.2f (1 is in proportion): %s of processor time per virtual day, and %s per decision.",
		count(a.X), count(b.X), slope(a.X, a.CPUSeconds, b.X, b.CPUSeconds), slope(a.X, float64(a.PeakBytes), b.X, float64(b.PeakBytes)), hours(sum.secondsPerDay), bytesOf(sum.bytesPerDecision))
	w.say("**Why.** A virtual moment in which nothing happens costs nothing: the time is that of the decisions. Every decision stays in the history until the verdict, which is what memory grows by; samples " +
		"are 288 in a simulation however long it is. The first days are dearer than their share, since the program's start and its report are in them.")
	return nil
}

func (r *record) clients(w *writer, sum *summary) error {
	w.say("## Clients of a search")
	w.say("Searches for a leak: each client takes once, and no fault happens.")
	sum.clientFactor = map[string]float64{}
	lines, err := r.searches(w, byClients, "clients")
	if err != nil {
		return err
	}
	var told []string
	for _, name := range r.lines(byClients) {
		all := r.of(byClients, name)
		n := len(all)
		f := float64(all[n-1].States) / float64(all[n-2].States)
		sum.clientFactor[name] = f
		sum.clientNames = append(sum.clientNames, name)
		told = append(told, fmt.Sprintf("`%s` by %s", name, format.Digits(f)))
	}
	if err := w.draw("growth-clients", "States against clients", "", plot.Trend{X: "clients", Y: "states", Lines: lines}); err != nil {
		return err
	}
	w.say("One more client multiplies the states of %s, between the last two points of each.", strings.Join(told, ", of "))
	w.say("**Why it is not linear.** Each command of a client is a step that can come before or after any step of another client, and what a client has read tells states apart until it has answered. A client " +
		"brings an instance of its own, with the jobs of the strategy: a strategy with jobs grows fastest. Schedules that meet in one state are searched once, which is what keeps states far fewer than orders.")
	return nil
}

func (r *record) script(w *writer, _ *summary) error {
	w.say("## Script length")
	w.say("Searches for a leak with two clients that take several times in a row.")
	lines, err := r.searches(w, byLength, "takes")
	if err != nil {
		return err
	}
	if err := w.draw("growth-script", "States against the length of a script", "", plot.Trend{X: "takes of each of two clients", Y: "states", Lines: lines}); err != nil {
		return err
	}
	var told []string
	for _, name := range r.lines(byLength) {
		all := r.of(byLength, name)
		n := len(all)
		a, b := all[n-2], all[n-1]
		told = append(told, fmt.Sprintf("%.1f for `%s`", slope(a.X, float64(a.States), b.X, float64(b.States)), name))
	}
	w.say("Between the last two points states grow as the length to the power of %s.", strings.Join(told, ", "))
	w.say("**Why it is not linear.** Two clients of n commands each can stand at (n + 1)² pairs of places; at each pair the store may hold as many counts as there were takes, and each client may have " +
		"been admitted or rejected at each. A limit grows along with the takes, since a search leaves room for all but one.")
	return nil
}

// searches writes the table of a sweep of searches, and returns its lines.
func (r *record) searches(w *writer, sweep, x string) (lines []plot.TrendLine, err error) {
	var rows [][]string
	for _, name := range r.lines(sweep) {
		l := plot.TrendLine{Name: name}
		all := r.of(sweep, name)
		if len(all) < 2 {
			return nil, fmt.Errorf("%s: %s has one point", sweep, name)
		}
		for _, p := range all {
			if p.Capped {
				return nil, fmt.Errorf("%s: %s at %g was ended by a bound: sweep fewer", sweep, name, p.X)
			}
			l.X, l.Y = append(l.X, p.X), append(l.Y, float64(p.States))
			rows = append(rows, []string{"`" + name + "`", count(p.X), count(float64(p.States)), count(float64(p.Schedules)), format.Digits(p.CPUSeconds) + " s", mebi(float64(p.PeakBytes))})
		}
		lines = append(lines, l)
	}
	w.table([]string{"strategy", x, "states", "schedules", "processor time", "memory"}, rows)
	return lines, nil
}

func (r *record) states(w *writer, sum *summary) error {
	all := r.of(byStates, "")
	if len(all) < 2 {
		return fmt.Errorf("the record has no states")
	}
	w.say("## States")
	w.say("`%s` with three clients, ended after so many states. Workers: one per processor, each with a world of its own.", all[0].Line)
	var rows [][]string
	cpu, peak := plot.TrendLine{Name: all[0].Line}, plot.TrendLine{Name: all[0].Line}
	for _, p := range all {
		rows = append(rows, []string{count(float64(p.States)), count(float64(p.Schedules)), format.Digits(p.WallSeconds) + " s", format.Digits(p.CPUSeconds) + " s", mebi(float64(p.PeakBytes))})
		cpu.X, cpu.Y = append(cpu.X, float64(p.States)), append(cpu.Y, p.CPUSeconds)
		peak.X, peak.Y = append(peak.X, float64(p.States)), append(peak.Y, float64(p.PeakBytes)/(1<<20))
	}
	w.table([]string{"states", "schedules", "wall time", "processor time", "memory"}, rows)
	if err := w.draw("growth-states", "Time and memory against states", "",
		plot.Trend{Title: "processor time", X: "states", Y: "s", Lines: []plot.TrendLine{cpu}}, plot.Trend{Title: "memory", X: "states", Y: "MiB", Lines: []plot.TrendLine{peak}}); err != nil {
		return err
	}
	n := len(all)
	middle, a, b := all[n/2], all[n-2], all[n-1]
	sum.states, sum.statePeak = float64(b.States), float64(b.PeakBytes)
	sum.bytesPerState = max(0, perUnit(float64(middle.States), float64(middle.PeakBytes), float64(b.States), float64(b.PeakBytes)))
	sum.stateSeconds, sum.statePower = b.CPUSeconds, slope(float64(a.States), a.CPUSeconds, float64(b.States), b.CPUSeconds)
	w.say("From %s to %s states processor time grows as states to the power of %.2f; from %s to %s states each takes %s.",
		count(float64(a.States)), count(float64(b.States)), sum.statePower,
		count(float64(middle.States)), count(float64(b.States)), bytesOf(sum.bytesPerState))
	w.say("**Why.** A schedule is run from its start, so that a state costs what the way to it is long, and ways become longer the deeper a search is. Memory is first that of the worlds in which schedules " +
		"run, and then that of the states seen, with the ways to those that are still to be searched.")
	return nil
}

// hundredfold says what a hundred times as much would take, by what was measured.
func (r *record) hundredfold(w *writer, sum *summary) error {
	w.say("## A hundred times this size, on paper")
	w.say("Nothing of this was run. It takes the last slopes above as they are, on one processor.")
	const times = 100
	subjects := times * sum.largest
	for _, name := range r.lines(bySubjects) {
		w.say("- **`%s`, %s subjects, a check each.** %s checks at %s per second are %s of processor time. Memory: a subject takes %s, and %s; together that is %s.", name, count(subjects), count(subjects),
			count(sum.perS[name]), hours(subjects/sum.perS[name]), bytesOf(sum.bytesPerSubject[name]), checksTake(sum.bytesPerCheck[name]), gibi(subjects*(sum.bytesPerSubject[name]+sum.bytesPerCheck[name])))
	}
	days := times * sum.days
	decisions := days * sum.decisionsPerDay
	w.say("- **%s virtual days.** %s days of %s are %s. Memory: %s decisions of %s are %s beside the %s of %s days.", count(days), count(days), hours(sum.secondsPerDay), hours(days*sum.secondsPerDay),
		count(decisions), bytesOf(sum.bytesPerDecision), gibi(decisions*sum.bytesPerDecision), mebi(sum.largestPeak), count(sum.days))
	states := times * sum.states
	takes := sum.stateSeconds * math.Pow(times, sum.statePower)
	w.say("- **%s states.** The %s of %s states, times 100 to the power of %.2f, are %s on one processor and %s on %d. Memory: %s states of %s are %s; `--max-memory` ends a search before.", count(states),
		hours(sum.stateSeconds), count(sum.states), sum.statePower, hours(takes), hours(takes/float64(r.Processors)), r.Processors, count(states), bytesOf(sum.bytesPerState), gibi(states*sum.bytesPerState))
	for _, name := range sum.clientNames {
		w.say("- **`%s`.** A hundred times the states are log 100 / log %s = %.1f more clients.", name, format.Digits(sum.clientFactor[name]), math.Log(times)/math.Log(sum.clientFactor[name]))
	}
	w.say("So a hundred times the subjects or the days is a matter of hours and of memory, and can be split by subjects (`--shard`), whose parts are merged again. A hundred times the schedules is a few clients: searches do not " +
		"get there by speed, but by bounds (`--preemptions`) and by states that are recognised as the same.")
	return nil
}
