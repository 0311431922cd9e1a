package workloads

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

// traceFormat is a format of files, and where it has time, subject and cost. Of several names for one of them the name
// counts that most rows have, and of equal ones the first.
type traceFormat struct {
	label string // for people
	shape func() rowShape
	time  []string // nil if it must be given
	// anonymous formats name no subjects. They are known by the fields of their cost.
	anonymous bool
	subject   []string
	// cost is nil if every row costs 1.
	cost []string
	// unit of the costs and a description of them; empty if the file does not say.
	unit, costIs string
}

// rowShape is how a line is divided into fields.
type rowShape interface {
	// begin learns the fields from the first lines. It is false if these are of another shape.
	begin(head []line) bool
	// fields are their names.
	fields() []string
	// ordered reports whether the names are in the order of the fields, which can then be given by number as well.
	ordered() bool
	// evident reports whether the lines are hardly of another shape.
	evident() bool
	// isRow is false for a header.
	isRow(l line) bool
	// split returns what it can of a row, and what is wrong with it.
	split(text string) (row values, damage string)
}

// commonEnd is the end of the common log format, and of the combined one.
const commonEnd = ` "request" #status #size ? "referrer" "agent"`

// traceFormats are all formats. That of a file is the one in which most of its first rows can be used, and of equal
// ones the first.
var traceFormats = []traceFormat{
	{
		label: "Azure LLM CSV", shape: inColumns, anonymous: true,
		time: []string{"TIMESTAMP"}, cost: []string{"ContextTokens+GeneratedTokens"},
		unit: "tokens", costIs: "its context tokens plus its generated tokens",
	},
	{label: "CSV", shape: inColumns, time: knownTimes, subject: knownSubjects, cost: knownCosts},
	{label: "JSON lines", shape: inJSON, time: knownTimes, subject: knownSubjects, cost: knownCosts},
	{label: "CloudFront log", shape: inExtended, time: knownTimes, subject: knownSubjects},
	{
		label: "access log with virtual hosts", shape: inWords(`host client ident user* [time]` + commonEnd),
		time: []string{"time"}, subject: []string{"client"},
	},
	{
		label: "access log", shape: inWords(`client ident user* [time]` + commonEnd),
		time: []string{"time"}, subject: []string{"client"},
	},
	{
		label: "HAProxy log", shape: inWords(`client:port [time] frontend backend timers #status bytes`),
		time: []string{"time"}, subject: []string{"client"},
	},
	{
		label: "Envoy log", shape: inWords(`[time] "request" #status flags #received #sent #duration upstream-time ` +
			`"x-forwarded-for" "user-agent" "request-id" "authority" "upstream"`),
		time: []string{"time"}, subject: []string{"x-forwarded-for"},
	},
	{
		label: "AWS load balancer log", shape: inWords(`type time elb client:port target request-time target-time ` +
			`response-time status target-status #received #sent "request" "user-agent"`),
		time: []string{"time"}, subject: []string{"client"},
	},
	{label: "words", shape: inWords("")}, // of which --trace-fields gives the numbers
}

// The names of fields that are known where a file names its fields itself. Case and punctuation do not count.
var (
	knownTimes = []string{"StartUTC", "timestamp", "ts", "datetime", "date+time", "time", "time_iso8601", "time_local",
		"msec", "start_time", "started_at", "event_time", "EdgeStartTimestamp"}
	knownSubjects = []string{"subject", "user_id", "user", "client_ip", "remote_ip", "remote_addr", "ClientHost",
		"ClientAddr", "client", "c-ip", "request.client_ip", "request.remote_ip", "request.remote_addr", "client.ip",
		"source.ip", "httpRequest.clientIp", "httpRequest.remoteIp", "ip", "source_ip", "x_forwarded_for"}
	knownCosts = []string{"cost", "tokens", "total_tokens", "usage.total_tokens"}
)

func inColumns() rowShape { return &delimited{} }

func inJSON() rowShape { return &jsonLines{} }

func inExtended() rowShape { return &extended{} }

func inWords(elements string) func() rowShape {
	return func() rowShape { return newWords(elements) }
}

// syslogHeader is what syslog writes before a line: priority, date, host, program and process. The process' number
// may be left out, or else all that is before the program.
var syslogHeader = regexp.MustCompile(`^(?:<\d+>)?` +
	`(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) \S+ [\w./-]+(?:\[\d+\])?|[\w./-]+\[\d+\]): `)

// withoutSyslog removes the header.
func withoutSyslog(text string) string { return text[len(syslogHeader.FindString(text)):] }

// recognise tells the format from the first lines.
func recognise(head []line, given traceFields) (*dialect, error) {
	plain := make([]line, len(head))
	headed := 0
	for i, line := range head {
		plain[i] = line
		plain[i].text = withoutSyslog(line.text)
		if plain[i].text != line.text {
			headed++
		}
	}
	fromSyslog := 2*headed > len(head)
	if fromSyslog {
		head = plain
	}
	var best, doubtful *attempt
	for i := range traceFormats {
		tried := traceFormats[i].try(head, given)
		switch {
		case tried == nil:
		case tried.fits() && (best == nil || tried.betterThan(best)):
			best = tried
		case tried.dialect.shape.evident() && doubtful == nil:
			doubtful = tried
		}
	}
	switch {
	case best == nil && doubtful == nil:
		return nil, unknownFormat(head[0].text)
	case best == nil:
		best = doubtful
	}
	if best.err != nil {
		return nil, fmt.Errorf("%s: %w", best.dialect.label, best.err)
	}
	best.dialect.fromSyslog = fromSyslog
	return best.dialect, nil
}

// unknownFormat lists the formats.
func unknownFormat(first string) error {
	var labels []string
	for _, known := range traceFormats {
		if known.time != nil {
			labels = append(labels, known.label)
		}
	}
	if strings.HasPrefix(first, "[") || strings.HasPrefix(first, "{") {
		return errors.New("unknown format: if it is JSON, write one object per line, as jq -c does; the formats are " +
			strings.Join(labels, ", "))
	}
	return fmt.Errorf("unknown format: none of %s; if it is a log of words, count them from 1 and say which are needed, "+
		"e.g. --trace-fields time=4,subject=1", strings.Join(labels, ", "))
}

// attempt is a format as far as it fits the first rows of a file.
type attempt struct {
	dialect *dialect
	usable  int // rows with time and subject
	whole   int // rows with a time, and without damage
	// err says which field is missing.
	err error
}

// fits reports whether the rows are of the format.
func (a *attempt) fits() bool {
	return a.usable > 0 || a.whole > 0 || a.err == nil && a.dialect.shape.evident()
}

func (a *attempt) betterThan(other *attempt) bool {
	if a.usable != other.usable {
		return a.usable > other.usable
	}
	return a.whole > other.whole
}

// try reads the first lines in the format; nil if they are of another shape.
func (f *traceFormat) try(head []line, given traceFields) *attempt {
	shape := f.shape()
	if !shape.begin(head) {
		return nil
	}
	if _, err := findField(strings.Join(f.cost, plus), shape); f.anonymous && err != nil {
		return nil
	}
	tried := &dialect{label: f.label, shape: shape, anonymous: f.anonymous && given.subject == ""}
	if given.cost == "" {
		tried.unit = f.unit
		tried.costIs = f.costIs
	}
	var sample []values
	var damages []string
	for _, line := range head {
		if !shape.isRow(line) {
			continue
		}
		row, damage := shape.split(line.text)
		sample = append(sample, row)
		damages = append(damages, damage)
	}
	out := &attempt{dialect: tried, err: tried.choose(f, given, sample)}
	for i, row := range sample {
		if _, err := tried.layout.moment(tried.time.text(row)); err != nil {
			continue
		}
		if damages[i] == "" {
			out.whole++
		}
		if tried.anonymous || tried.who(row) != "" {
			out.usable++
		}
	}
	return out
}

// choose finds the fields in a file, of which sample are the first rows. The format's own fields are taken if others
// are given that the file has not: they tell whether the file is of the format at all.
func (d *dialect) choose(f *traceFormat, given traceFields, sample []values) error {
	moments := func(at field) int {
		_, fitting := likeliest(at.texts(sample))
		return fitting
	}
	filled := func(at field) int { return len(at.texts(sample)) }
	var wrong error
	for _, part := range []struct {
		what, given string
		known       []string
		count       func(field) int
		field       *field
	}{
		{"time", given.time, f.time, moments, &d.time},
		{"subject", given.subject, f.subject, filled, &d.subject},
		{"cost", given.cost, f.cost, filled, &d.cost},
	} {
		*part.field = mostFrequent(part.known, d.shape, part.count)
		if part.given == "" {
			continue
		}
		found, err := findField(part.given, d.shape)
		switch {
		case err == nil:
			*part.field = found
		case wrong == nil:
			wrong = fmt.Errorf("--trace-fields %s=%s: %w", part.what, part.given, err)
		}
	}
	d.layout, _ = likeliest(d.time.texts(sample))
	if wrong != nil {
		return wrong
	}
	return d.complete()
}

// complete reports which fields are still missing.
func (d *dialect) complete() error {
	var unnamed []string
	if d.time == nil {
		unnamed = append(unnamed, "time")
	}
	if d.subject == nil && !d.anonymous {
		unnamed = append(unnamed, "subject")
	}
	if unnamed == nil {
		return nil
	}
	flag := format.List(unnamed, ",", func(what string) string { return what + "=FIELD" })
	return fmt.Errorf("no field is known as the %s: say which is, with --trace-fields %s, %s",
		strings.Join(unnamed, " or the "), flag, quota.OneOf(unnamed[0], d.shape.fields()))
}

// mostFrequent is the field of those known that count finds in most rows; nil if the file has none of them.
func mostFrequent(known []string, shape rowShape, count func(field) int) (best field) {
	most := -1
	for _, candidate := range known {
		found, err := findField(candidate, shape)
		if err != nil {
			continue
		}
		if rows := count(found); rows > most {
			best = found
			most = rows
		}
	}
	return best
}
