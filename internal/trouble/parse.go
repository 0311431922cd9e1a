package trouble

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

// Parse reads an event, event.g. "redis:away@0.3-0.6". An error shows the nearest text that can be read.
func Parse(text string) (Event, error) {
	event, err := read(text)
	if err != nil {
		return event, fmt.Errorf("%q: %w, as in %s", text, err, nearest(text))
	}
	return event, nil
}

// ParseAll reads several events.
func ParseAll(texts []string) (list List, err error) {
	for _, text := range texts {
		event, err := Parse(text)
		if err != nil {
			return nil, err
		}
		list = append(list, event)
	}
	return list, nil
}

// MustParse reads events whose texts are known to be right, and panics if one is not.
func MustParse(texts ...string) List {
	list, err := ParseAll(texts)
	if err != nil {
		panic(err)
	}
	return list
}

// String writes the event as [Parse] reads it.
func (e Event) String() string {
	var parts []string
	for i := range items {
		item := &items[i]
		if item.place != e.Where.place() {
			continue
		}
		text := ""
		zero := false
		if item.value != nil {
			text, zero = item.value.write(&e.What)
		}
		has := e.What.Word == item.name
		if item.part {
			has = !zero && (item.kind != Network || e.What.Word == "")
		}
		switch {
		case !has:
		case item.value == nil || item.optional && (zero || text == ""):
			parts = append(parts, string(item.name))
		default:
			parts = append(parts, string(item.name)+"="+text)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "latency=0s") // nothing is wrong with the network
	}
	text := e.Where.String() + ":" + strings.Join(parts, ",")
	switch {
	case e.When == Always:
		return text
	case e.When.From == e.When.To:
		return text + "@" + decimal(e.When.From)
	}
	return text + "@" + decimal(e.When.From) + "-" + decimal(e.When.To)
}

// String writes the place as a text of an event has it.
func (w Where) String() string {
	switch {
	case w.Name == Keys:
		return Keys + "/" + w.Pattern
	case w.Instance == All:
		return w.Name
	case w.Name == Instances:
		return instance + "/" + strconv.Itoa(w.Instance)
	}
	return w.Name + "/" + strconv.Itoa(w.Instance)
}

// instance is how a single one is named.
const instance = "instance"

// MarshalText writes the event as [Parse] reads it.
func (e Event) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what [Event.MarshalText] writes.
func (e *Event) UnmarshalText(data []byte) (err error) {
	*e, err = Parse(string(data))
	return err
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, last string, ok bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// read reads an event. The error is a reason.
func read(text string) (event Event, err error) {
	where, rest, ok := cutLast(text, ":")
	if !ok {
		return event, errors.New("give where something happens and what, with a colon between them")
	}
	event.Where, ok = readWhere(where)
	if !ok {
		return event, errors.New("give a store's name, instances, instance/1, callers, keys/PATTERN or limit, and what " +
			"happens there")
	}
	what, when, timed := cutLast(rest, "@")
	first, err := event.readWhat(what)
	if err != nil {
		return event, err
	}
	if event.Where.Instance != All && event.Where.Name != Instances && first.kind != Network {
		return event, errors.New("a store is the same for all instances: only its network is one of each")
	}
	return event, event.readWhen(first.when, when, timed)
}

// store is the form of a store's name.
var store = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[A-Za-z0-9_-]+)?$`)

// readWhere reads the place.
func readWhere(text string) (where Where, ok bool) {
	where.Instance = All
	name, number, one := strings.Cut(text, "/")
	where.Name = name
	switch {
	case name == Keys:
		where.Pattern = number
		_, err := path.Match(number, "")
		return where, number != "" && err == nil
	case name == instance && one:
		where.Name = Instances
	case name == Instances || name == Callers || name == Limit:
		return where, !one
	case name == instance || !store.MatchString(name):
		return where, false
	}
	if one {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || strconv.Itoa(n) != number {
			return where, false
		}
		where.Instance = n
	}
	return where, true
}

// readWhat reads what happens, and returns the first word.
func (e *Event) readWhat(text string) (first *item, err error) {
	var given []Word
	for part := range strings.SplitSeq(text, ",") {
		name, value, valued := strings.Cut(part, "=")
		item := find(e.Where.place(), Word(name))
		switch {
		case item == nil:
			return nil, errors.New("nothing of that name happens there")
		case slices.Contains(given, item.name):
			return nil, fmt.Errorf("%s is given twice", item.name)
		case first != nil && (item.kind != first.kind || !item.part && e.What.Word != ""):
			return nil, fmt.Errorf("%s and %s are two events: give each by itself", first.name, item.name)
		case valued && item.value == nil:
			return nil, fmt.Errorf("%s has no value", item.name)
		case !valued && item.value != nil && !item.optional:
			return nil, fmt.Errorf("%s needs a value", item.name)
		case valued && item.name == "cut":
			return nil, errors.New("cut has no value")
		}
		if item.value != nil && (valued || item.part) && !item.value.read(&e.What, value) {
			return nil, fmt.Errorf("give another value of %s", item.name)
		}
		if !item.part {
			e.What.Word = item.name
		}
		given = append(given, item.name)
		if first == nil {
			first = item
		}
	}
	return first, e.fits(first)
}

// fits reports values that do not go together.
func (e *Event) fits(first *item) error {
	switch {
	case e.What.Jitter > e.What.Latency:
		return errors.New("the jitter is larger than the latency, and no reply comes before it is sent")
	case first.kind == Kill && e.What.Share == 0:
		return errors.New("give the share of the callers that is killed, above 0")
	case first.kind == Kill:
		e.What.After = max(e.What.After, 1)
	}
	return nil
}

// readWhen reads when it happens.
func (e *Event) readWhen(allowed timing, text string, given bool) error {
	e.When = Always
	if !given {
		if allowed == anyMoment || allowed == laterThan0 {
			return errors.New("give the moment as a share of the duration")
		}
		return nil
	}
	from, to, spans := strings.Cut(text, "-")
	if !spans {
		to = from
	}
	var err1, err2 error
	e.When.From, err1 = strconv.ParseFloat(from, 64)
	e.When.To, err2 = strconv.ParseFloat(to, 64)
	if err1 != nil || err2 != nil || !(e.When.From >= 0 && e.When.To <= 1) {
		return errors.New("give the time in shares of the duration, from 0 to 1")
	}
	first := e.When.From
	switch {
	case allowed == always:
		return errors.New("it happens all the time, and at no moment")
	case allowed == during && !(first < e.When.To):
		return errors.New("give an interval, from when to when")
	case allowed != during && (spans || !(first < 1)):
		return errors.New("give one moment before the end")
	case (allowed == laterThan0 || allowed == since) && !(first > 0):
		return errors.New("give a moment after the beginning and before the end")
	}
	return nil
}

// A text with more than that is nowhere near an event.
const (
	longest   = 200 // bytes
	mostParts = 8
)

// nearest is the text that says most of what another one says, and can be read.
func nearest(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(":@,+", r) })
	if len(text) > longest || len(parts) > mostParts {
		return items[0].example
	}
	for _, where := range likelyPlaces(text, parts) {
		place, _ := readWhere(where)
		for _, item := range likelyItems(place.place(), parts) {
			whole, when, _ := cutLast(item.example, "@")
			_, what, _ := cutLast(whole, ":")
			for _, what := range append(likelyValues(item, parts), what) {
				for _, when := range append(slices.Clone(parts), when) {
					candidate := where + ":" + what
					if when != "" {
						candidate += "@" + when
					}
					if event, err := read(candidate); err == nil {
						return event.String()
					}
				}
			}
		}
	}
	return items[0].example
}

// likelyPlaces are those that a text may be about.
func likelyPlaces(text string, parts []string) (out []string) {
	before, _, _ := cutLast(text, ":")
	first, _, colon := strings.Cut(text, ":")
	if name := quota.Nearest(first, []string{Instances, Callers, Limit}); name != "" && !strings.Contains(first, "/") {
		out = append(out, name)
	}
	if colon {
		out = append(out, before, first)
	}
	known := []string{"redis", "postgres", Instances, Callers, Limit}
	for _, part := range parts {
		if name := quota.Nearest(part, known); name != "" {
			out = append(out, name)
		}
	}
	for _, part := range parts {
		for i := range items {
			item := &items[i]
			name, _, _ := strings.Cut(part, "=")
			if string(item.name) == name {
				where, _, _ := cutLast(item.example, ":")
				out = append(out, where)
			}
		}
	}
	return out
}

// likelyItems are the words of a place, those that a text may mean first.
func likelyItems(place string, parts []string) (out []*item) {
	var names []string
	for i := range items {
		if items[i].place == place {
			names = append(names, string(items[i].name))
			out = append(out, &items[i])
		}
	}
	for _, part := range slices.Backward(parts) {
		name, _, _ := strings.Cut(part, "=")
		if meant := quota.Nearest(name, names); meant != "" {
			out = slices.Insert(out, 0, find(place, Word(meant)))
		}
	}
	return out
}

// likelyValues are the word with the values that a text has.
func likelyValues(it *item, parts []string) (out []string) {
	if it.value == nil || it.optional {
		out = append(out, string(it.name))
	}
	for _, part := range parts {
		_, value, valued := strings.Cut(part, "=")
		if !valued {
			value = part
		}
		out = append(out, string(it.name)+"="+value)
	}
	if it.optional { // a value that is given comes first
		slices.Reverse(out)
	}
	return out
}
