package quota

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// policyForms shows how to write a policy, for help texts and errors.
const policyForms = `"1000 requests per hour", "10/s burst 20", "5 attempts per rolling 15m", "20 links per month", ` +
	`"5 attempts per first-request 15m", "2GB" or "100 sandboxes at a time"`

// policyText splits the text of a policy. Words are separated by a space or by a
// dash, so that a policy's name can be its text without spaces.
var policyText = regexp.MustCompile(`^([0-9]+)[ -]([^ ]+?)[ -](?:` +
	`per[ -]calendar[ -](month|day|hour)(?:[ -]in[ -]([^ ]+?))?` +
	`|per[ -](fixed|rolling|first-request)[ -]([0-9][^ -]*)` +
	`|refilling[ -]([0-9]+)[ -]per[ -]([0-9][^ -]*)` +
	`|(at[ -]a[ -]time|standing)` +
	`)(?:[ -]costing[ -]([0-9]+(?:[ -]or[ -][0-9]+)*))?(?:[ -]held[ -]([0-9][^ -]*))?$`)

// ParsePolicy reads a policy as people say it:
//
//	LIMIT UNIT per calendar month|day|hour [in ZONE]
//	LIMIT UNIT per fixed|rolling|first-request LENGTH
//	LIMIT UNIT refilling N per LENGTH
//	LIMIT UNIT at a time
//
// and after each [costing N or N ...] [held LENGTH]. The unit is one word. A
// length is a Go duration, or a number of days such as 7d. The zone is a name of
// the time zone database; without one calendar windows follow UTC. A dash may
// stand for each space, and "standing" for "at a time". The policy's name is its
// [Policy.Text] with dashes for spaces.
//
// What people write is read, too, e.g. "1000/h", "1,000 API calls per hour", "10/s burst 20",
// "100 rpm", "5 logins per rolling 15 minutes", "500k tokens per month in Europe/Berlin" and
// "2GB". A window of which no kind is said is a fixed one, and a month is that of the calendar.
func ParsePolicy(text string) (Policy, error) {
	texts, err := policyParts(text)
	if err != nil {
		return Policy{}, fmt.Errorf("policy %q: %w", text, err)
	}
	policy := Policy{Unit: texts[2]}
	var errs [4]error
	policy.Limit, errs[0] = strconv.ParseInt(texts[1], 10, 64)
	if errs[0] != nil {
		errs[0] = fmt.Errorf("the limit is above %d", int64(MaxLimit))
	}
	if policy.Limit == 1 {
		policy.Unit = plural(policy.Unit)
	}
	policy.Window, errs[1] = parseWindow(texts)
	policy.Costs, errs[2] = parseCosts(texts[10])
	if texts[11] != "" {
		policy.Hold, errs[3] = ParseLength(texts[11])
	}
	err = errors.Join(errs[:]...)
	if err == nil {
		policy.Name = strings.ReplaceAll(policy.Text(), " ", "-")
		err = policy.Validate()
	}
	if err != nil {
		return Policy{}, fmt.Errorf("policy %q: %s", text, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return policy, nil
}

// policyParts are the groups of policyText in a policy, which may be written as people write it.
func policyParts(text string) ([]string, error) {
	words := strings.Join(strings.Fields(text), " ")
	parts := policyText.FindStringSubmatch(words)
	if parts != nil {
		return parts, nil
	}
	formal, err := formalPolicy(words)
	if err != nil {
		return nil, err
	}
	parts = policyText.FindStringSubmatch(formal)
	if parts == nil {
		return nil, fmt.Errorf("give one such as %s", policyForms)
	}
	return parts, nil
}

// parseWindow reads the window from the parts of a policy.
func parseWindow(parts []string) (window Window, err error) {
	switch {
	case parts[3] != "":
		window.Kind = map[string]Kind{"month": CalendarMonth, "day": CalendarDay, "hour": CalendarHour}[parts[3]]
		window.Location, err = ParseZone(parts[4])
	case parts[5] != "":
		window.Kind = map[string]Kind{"fixed": Fixed, "rolling": Rolling, "first-request": FirstRequest}[parts[5]]
		window.Length, err = ParseLength(parts[6])
	case parts[7] != "":
		window.Kind = Bucket
		window.Refill, err = strconv.ParseInt(parts[7], 10, 64)
		if err != nil {
			err = fmt.Errorf("the refill is above %d", int64(MaxLimit))
		}
		length, lengthErr := ParseLength(parts[8])
		window.Length = length
		err = errors.Join(err, lengthErr)
	}
	return window, err
}

// parseCosts reads e.g. "1 or 5"; nothing stands for no costs.
func parseCosts(text string) (costs []int64, err error) {
	if text == "" {
		return nil, nil
	}
	for cost := range strings.SplitSeq(strings.ReplaceAll(text, " ", "-"), "-or-") {
		units, parseErr := strconv.ParseInt(cost, 10, 64)
		if parseErr != nil {
			err = fmt.Errorf("the cost %s is too large", cost)
		}
		costs = append(costs, units)
	}
	return costs, err
}

// ParseLength reads a Go duration, or a number of days such as 7d.
func ParseLength(text string) (time.Duration, error) {
	bad := fmt.Errorf("length %q: give one such as 90s, 15m, 1h or 7d", text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n < 0 || n > int64(MaxLength/day) {
			return 0, bad
		}
		return time.Duration(n) * day, nil
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, bad
	}
	return duration, nil
}

// ParseZone reads the name of a time zone. "" and "UTC" are nil, as in [Window].
// The machine's own zone is refused: a policy means the same everywhere.
func ParseZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return nil, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %q: give a name such as Europe/Berlin", name)
	}
	return loc, nil
}

// Bounds of policies.
const (
	// MaxLimit is the largest limit, in units: sums of units fit into 64 bits.
	MaxLimit = 1 << 60
	// MaxLength is the longest window, hold and life.
	MaxLength = 10 * 366 * day

	day     = 24 * time.Hour
	maxName = 500 // bytes of a name or a description
	maxUnit = 60  // bytes
)

var (
	policyName = regexp.MustCompile(`^[^\s,:=]+$`)
	policyUnit = regexp.MustCompile(`^[^\s,:=]*[^\s,:=0-9][^\s,:=]*$`)
)

// Validate reports everything that is wrong with a policy, in one line.
func (p *Policy) Validate() error {
	var wrong []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	window := p.Window
	add(!policyName.MatchString(p.Name), "name %q is empty or contains a space or one of \",:=\"", p.Name)
	add(!printable(p.Name) || !printable(p.Doc), "its name or its description has characters that cannot be printed")
	add(len(p.Name) > maxName || len(p.Doc) > maxName, "its name or its description has more than %d bytes", maxName)
	add(p.Limit < 1 || p.Limit > MaxLimit, "the limit is %d, not from 1 to %d", p.Limit, int64(MaxLimit))
	add(!policyUnit.MatchString(p.Unit) || reserved(p.Unit) || !printable(p.Unit) || len(p.Unit) > maxUnit,
		"the unit %q is not one word such as requests", p.Unit)
	add(int(window.Kind) >= len(kindNames), "the kind of its window is unknown: %v", window.Kind)
	if window.Kind.HasLength() {
		add(window.Length <= 0 || window.Length > MaxLength,
			"the length of its %v window is %v, not above 0 and at most ten years", window.Kind, window.Length)
	} else {
		add(window.Length != 0, "a %v window has no length of its own, but %v is given", window.Kind, window.Length)
	}
	if window.Kind == Bucket {
		add(window.Refill < 1 || window.Refill > MaxLimit, "the refill of its bucket is %d, not from 1 to %d", window.Refill,
			int64(MaxLimit))
		add(window.Length > 0 && window.Refill/int64(window.Length) > 1,
			"its bucket refills by more than a unit in a nanosecond")
	} else {
		add(window.Refill != 0, "a %v window is not refilled, but %d is given", window.Kind, window.Refill)
	}
	add(window.Location != nil && (!window.Kind.Tumbling() || window.Kind == Fixed),
		"a %v window follows no time zone, but %v is given", window.Kind, window.Location)
	for _, c := range p.Costs {
		add(c < 1 || c > p.Limit, "a cost of %d is not from 1 to the limit", c)
	}
	add(p.Hold < 0 || p.Hold > MaxLength, "a hold of %v is not from 0 to ten years", p.Hold)
	add(p.Hold > 0 && window.Kind != Standing, "units of a %v window are not held, but %v is given", window.Kind, p.Hold)
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

// printable reports whether a text can be shown as it is: control characters could
// change what a terminal shows.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// reserved reports a unit that contains a word with a meaning of its own in the
// text of a policy.
func reserved(unit string) bool {
	for word := range strings.SplitSeq(unit, "-") {
		switch word {
		case "per", "at", "standing", "refilling":
			return true
		}
	}
	return false
}

// String renders the cap as people say it, e.g. "20 links per calendar month".
func (p Policy) String() string {
	return fmt.Sprintf("%d %s %s", p.Limit, p.Counted(), p.Window.When())
}

// Counted is what the limit counts: the unit, in the singular if the limit is 1.
func (p Policy) Counted() string {
	if one := Singular(p.Unit); p.Limit == 1 && plural(one) == p.Unit && !reserved(one) {
		return one
	}
	return p.Unit
}

// When says when units are free again, e.g. "per rolling 15m" or "at a time".
func (w Window) When() string {
	switch w.Kind {
	case Standing:
		return "at a time"
	case CalendarMonth, CalendarDay, CalendarHour:
		text := "per " + strings.Replace(w.Kind.String(), "-", " ", 1)
		if w.Location != nil && w.Location != time.UTC {
			text += " in " + w.Location.String()
		}
		return text
	case Bucket:
		return fmt.Sprintf("refilling %d per %s", w.Refill, LengthText(w.Length))
	default:
		return "per " + w.Kind.String() + " " + LengthText(w.Length)
	}
}

// Singular is the name of one unit: "e-mail" of "e-mails", "query" of "queries", and "MB" of "MB".
func Singular(name string) string {
	switch {
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "xes"), strings.HasSuffix(name, "tches"), strings.HasSuffix(name, "shes"),
		strings.HasSuffix(name, "sses"):
		return strings.TrimSuffix(name, "es")
	case strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss"):
		return strings.TrimSuffix(name, "s")
	default:
		return name
	}
}

// plural is the name of several, and what is in capitals, or ends as plurals do, is one.
func plural(name string) string {
	n := len(name)
	switch {
	case strings.HasSuffix(name, "s"), name == strings.ToUpper(name):
		return name
	case strings.HasSuffix(name, "y") && !strings.ContainsAny(name[max(0, n-2):n-1], "aeiou"):
		return name[:n-1] + "ies"
	case Singular(name+"es") == name:
		return name + "es"
	}
	return name + "s"
}

// Period is the time over which the limit counts: the length of the window, or the time in which
// an empty bucket is full. A calendar month counts as 30 days, and what has no length as an hour.
func (p *Policy) Period() time.Duration {
	window := p.Window
	switch window.Kind {
	case CalendarDay:
		return day
	case CalendarMonth:
		return 30 * day
	case Fixed, Rolling, FirstRequest:
		return window.Length
	case Bucket:
		full := float64(p.Limit) / float64(window.Refill) * float64(window.Length)
		return time.Duration(min(max(1, full), float64(MaxLength)))
	}
	return time.Hour
}

// As is the policy with a window of another kind: the same limit, for its [Policy.Period]. A bucket
// has the size of the limit and is full again after that time. The name of the new policy is its
// text.
func (p Policy) As(kind Kind) Policy {
	window := p.Window
	if kind == window.Kind {
		return p
	}
	length := p.Period()
	p.Window = Window{Kind: kind}
	p.Doc = ""
	p.Source = ""
	if kind.HasLength() {
		p.Window.Length = length
	}
	if kind == Bucket {
		p.Window.Refill = p.Limit
	}
	if kind != Standing {
		p.Hold = 0
	}
	p.Name = strings.ReplaceAll(p.Text(), " ", "-")
	return p
}

// Text is [Policy.String] with the costs and the hold, which [ParsePolicy] reads.
// It has neither the name nor what documents a policy.
func (p Policy) Text() string {
	text := p.String()
	for i, c := range p.Costs {
		text += map[bool]string{true: " costing ", false: " or "}[i == 0] + strconv.FormatInt(c, 10)
	}
	if p.Hold > 0 {
		text += " held " + LengthText(p.Hold)
	}
	return text
}

// LengthText is a duration without the zeros at its end, as [ParseLength] reads it: 1h for 1h0m0s.
func LengthText(duration time.Duration) string {
	text := duration.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}
