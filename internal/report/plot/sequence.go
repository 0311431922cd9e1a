package plot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Geometry of a sequence chart, in points. Commands are set in a monospaced font.
const (
	monoSize, monoChar = 11.0, 6.65
	sansSize           = 12.0
	lineHeight         = 14.0
	labelChars         = 38 // of a command, in a line
	labelRoom          = 10.0
	leastLane          = 150.0
	leftMargin         = 52.0
	truthWidth         = 92.0
	rowGap             = 11.0
)

// markKind is how a step is drawn.
type markKind int

const (
	markNote  markKind = iota // on the lifeline alone
	markCall                  // an arrow to a store
	markReply                 // a dashed arrow back
	markBoth                  // a call and its reply
	markBand                  // across everything: clock, store, instance
)

// row is one step as it is drawn.
type row struct {
	step   results.Step
	kind   markKind
	lane   int // of the actor, or -1
	store  int // lane of the store, or -1
	label  []string
	answer string   // at the arrow back
	stored []string // after the step
	fault  bool
	broken bool // the arrow does not arrive
	ends   bool // the actor dies here
	y      float64
	height float64
}

// lane is a lifeline.
type lane struct {
	head   []string
	store  string // empty for actors
	column int    // of an actor
	value  float64
	end    float64 // where it ends early, or 0
}

// chart is a finding, laid out.
type chart struct {
	lanes  []lane
	rows   []row
	width  float64
	bottom float64 // of the lifelines
	truth  float64 // middle of the column of the truth
	stored float64 // left end of the column of what is stored, or 0
	busy   []span
}

// span is a call in progress on a lane.
type span struct {
	lane     int
	from, to float64
}

const headHeight = 38.0

// layOut places everything.
func layOut(finding *results.Finding) *chart {
	c := &chart{}
	c.addLanes(finding)
	c.addRows(finding)
	gap := leastLane
	for _, row := range c.rows {
		if row.kind == markBand {
			continue
		}
		for _, text := range append(slices.Clone(row.label), row.answer) {
			gap = max(gap, float64(utf8.RuneCountInString(text))*monoChar+2*labelRoom+8)
		}
	}
	for i := range c.lanes {
		c.lanes[i].value = leftMargin + gap/2 + float64(i)*gap
	}
	edge := leftMargin + gap*float64(len(c.lanes))
	c.truth = edge + truthWidth/2
	// Two lanes are narrow; the text above them need not be as narrow.
	c.width = max(edge+truthWidth+c.widthOfStored()+12, 560)
	if c.widthOfStored() > 0 {
		c.stored = edge + truthWidth
	}
	y := headHeight + 12
	for i := range c.rows {
		row := &c.rows[i]
		if row.kind == markBand {
			row.label = strings.Split(fold(plainText(ink), drawable(strings.Join(row.label, " ")),
				vg.Length(edge-leftMargin-16)), "\n")
		}
		row.y, row.height = y, row.tall()
		y += row.height
	}
	c.bottom = y + 6
	c.addSpans()
	return c
}

// widthOfStored is the width of the column of what is stored, 0 if nothing is known of it.
func (c *chart) widthOfStored() float64 {
	most := 0
	for _, row := range c.rows {
		for _, line := range row.stored {
			most = max(most, utf8.RuneCountInString(line))
		}
	}
	return float64(most) * monoChar
}

// addLanes puts the stores in the middle, so that arrows cross few lifelines.
func (c *chart) addLanes(finding *results.Finding) {
	cols := finding.ActorColumns()
	var stores []string
	for _, name := range []string{"redis", "model", "postgres"} {
		if slices.ContainsFunc(finding.Steps, func(step results.Step) bool { return step.Store == name }) {
			stores = append(stores, name)
		}
	}
	if len(stores) == 0 {
		stores = []string{"redis"}
	}
	middle := (len(cols) + 1) / 2
	for i, col := range cols {
		if i == middle {
			c.addStores(stores)
		}
		c.lanes = append(c.lanes, lane{head: actorHead(&finding.Columns[col]), column: col})
	}
	if len(cols) <= middle {
		c.addStores(stores)
	}
}

func (c *chart) addStores(names []string) {
	heads := map[string][]string{"redis": {"Redis"}, "model": {"PostgreSQL", "(a model of it)"},
		"postgres": {"PostgreSQL"}}
	for _, n := range names {
		c.lanes = append(c.lanes, lane{head: heads[n], store: n, column: -1})
	}
}

// actorHead spells an actor out.
func actorHead(column *results.Column) []string {
	label := cmp.Or(column.Label, column.Name)
	switch {
	case column.Role == codes.RoleClient:
		return []string{"client " + label}
	case column.Instance != nil:
		return []string{"job " + label, fmt.Sprintf("of instance %d", *column.Instance)}
	}
	return []string{"job " + label}
}

// addRows decides how each step is drawn. What a command answered is told when
// the answer arrives.
func (c *chart) addRows(finding *results.Finding) {
	pending := map[int]string{}
	stored := layout.StoredTexts(finding)
	for i, step := range finding.Steps {
		r := row{step: step, store: -1, fault: step.Event.Injected(), stored: wrapped(stored[i])}
		r.lane = slices.IndexFunc(c.lanes, func(l lane) bool { return l.store == "" && l.column == step.Column })
		if step.Store != "" {
			r.store = slices.IndexFunc(c.lanes, func(l lane) bool { return l.store == step.Store })
		}
		switch {
		case r.lane < 0:
			head := step.Actor
			if step.Event == codes.EventCrash {
				head += " crash"
			}
			r.kind = markBand
			r.label = []string{head + ": " + step.Command}
		case step.Event == codes.EventCrash:
			r.kind = markNote
			r.label = []string{"crashes"}
			r.ends = true
		case step.Event == codes.EventLostReply:
			r.kind = markReply
			r.label = []string{"the reply is lost"}
			r.broken = true
		case r.store < 0:
			r.kind = markNote
			r.label = layout.Wrap(strings.TrimSpace(step.Command+" "+step.Reply), labelChars)
		case step.Command == "":
			r.kind = markReply
			r.label = layout.Wrap(pending[step.Column], labelChars)
		default:
			reply := cmp.Or(step.Reply, "done")
			pending[step.Column] = reply
			split := step.Outcome == "" && replyFollows(finding.Steps, i)
			r.calls(&step, reply, split)
		}
		r.answer = short(r.answer)
		c.rows = append(c.rows, r)
	}
}

// calls makes the row that of a command, and of its reply unless a later row has that.
func (r *row) calls(step *results.Step, reply string, split bool) {
	r.kind = markCall
	r.label = layout.Wrap(step.Command, labelChars)
	switch step.Event {
	case codes.EventOutage:
		r.broken = true
		r.label = append([]string{"cannot be reached:"}, r.label...)
	case codes.EventRetry:
		r.label = append([]string{"sent once more:"}, r.label...)
	}
	if !split && !r.broken {
		r.kind = markBoth
		r.answer = reply
	}
}

// wrapped are the lines of a text, none of one that is empty.
func wrapped(text string) []string {
	if text == "" {
		return nil
	}
	return layout.Wrap(text, labelChars)
}

// replyFollows reports whether the actor's next step is about the reply to the step with that index, or
// that step is its last and the effect alone has happened.
func replyFollows(steps []results.Step, i int) bool {
	step := steps[i]
	for _, n := range steps[i+1:] {
		if n.Column == step.Column {
			return n.Command == "" || n.Event == codes.EventRetry
		}
	}
	return step.Store != "" && slices.ContainsFunc(steps, func(n results.Step) bool {
		return n.Store != "" && n.Command == ""
	})
}

func short(text string) string {
	if utf8.RuneCountInString(text) <= labelChars {
		return text
	}
	return string([]rune(text)[:labelChars-3]) + "..."
}

// tall is the height of a row with what it holds.
func (r *row) tall() float64 {
	return max(r.tallOfStep(), rowGap+float64(len(r.stored))*lineHeight)
}

func (r *row) tallOfStep() float64 {
	lines := float64(len(r.label)) * lineHeight
	h := rowGap
	switch r.kind {
	case markBand:
		return h + lines + 12
	case markNote:
		h += max(lines, lineHeight)
	default:
		h += lines + 6
	}
	if r.answer != "" {
		h += lineHeight + 6
	}
	if r.step.Outcome != "" {
		h += pillHeight + 5
	}
	return h
}

const pillHeight = 19.0

// arrow is where the row's first arrow lies.
func (r *row) arrow() float64 {
	return r.y + rowGap/2 + float64(len(r.label))*lineHeight + 2
}

// pill is where the verdict begins.
func (r *row) pill() float64 { return r.y + r.height - rowGap/2 - pillHeight }

// addSpans finds where calls are in progress, and where actors die.
func (c *chart) addSpans() {
	open := map[int]float64{}
	last := map[int]float64{}
	for i := range c.rows {
		row := &c.rows[i]
		if row.lane < 0 {
			continue
		}
		at := row.arrow()
		if row.kind == markNote {
			at = row.y + row.height/2
		}
		if _, ok := open[row.lane]; !ok {
			open[row.lane] = at
		}
		last[row.lane] = row.y + row.height
		if row.step.Outcome != "" {
			c.busy = append(c.busy, span{row.lane, open[row.lane], row.pill()})
			delete(open, row.lane)
		}
		if row.ends {
			c.busy = append(c.busy, span{row.lane, open[row.lane], at})
			delete(open, row.lane)
			c.lanes[row.lane].end = at
		}
	}
	for l, from := range open {
		c.busy = append(c.busy, span{l, from, last[l]})
	}
	slices.SortFunc(c.busy, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.from, b.from))
	})
}

// verbs say what a strategy does whose schedule breaks a property.
var verbs = map[results.Property]string{
	"leak": "leaks", "guarantee": "breaks its guarantee", "false-reject": "rejects wrongly", "drift": "drifts",
	"ttl": "leaves an immortal key", "stranded": "strands units", "negative": "counts below zero",
	"forgotten": "forgets", "stuck": "gets stuck", "deadlock": "deadlocks", "serialization-failure": "fails to serialize",
	"panic": "ends its program",
}

// sheetOf says what was found, and how to see it again.
func sheetOf(finding *results.Finding) sheet {
	verb, ok := verbs[finding.Property]
	if !ok {
		verb = "breaks " + string(finding.Property)
	}
	faults := "no fault"
	if len(finding.Faults) > 0 {
		faults = "faults: " + strings.Join(format.Strings(finding.Faults), ", ")
	}
	s := sheet{
		title: format.Plain(fmt.Sprintf("%s %s: %s", finding.Strategy, verb, finding.Detail)),
		caption: format.Plain(fmt.Sprintf("the shortest schedule found: %s under the policy %s, %s",
			format.Plural(int64(len(finding.Steps)), "step", "steps"), finding.Policy, faults)),
	}
	if finding.Token != "" {
		s.note = finding.Replay()
	}
	s.desc = format.Join(" ", s.caption, s.note)
	return s
}
