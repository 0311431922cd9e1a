package workloads

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/quotabench/quotabench/quota"
)

// traceFields are the fields that --trace-fields names; "" is left to the format.
type traceFields struct{ time, subject, cost string }

// parseTraceFields reads time=FIELD,subject=FIELD,cost=FIELD. Each part may be left out.
func parseTraceFields(text string) (traceFields, error) {
	var given traceFields
	if text == "" {
		return given, nil
	}
	known := map[string]*string{"time": &given.time, "subject": &given.subject, "cost": &given.cost}
	for part := range strings.SplitSeq(text, ",") {
		key, name, _ := strings.Cut(strings.TrimSpace(part), "=")
		field := known[key]
		if field == nil || name == "" {
			return given, fmt.Errorf("%q is not of the form time=FIELD,subject=FIELD,cost=FIELD, each of which may be left out",
				text)
		}
		if *field != "" {
			return given, fmt.Errorf("%q gives %s twice", text, key)
		}
		*field = name
	}
	return given, nil
}

// field is where a value stands in a row. Of several names, texts are joined by a space and costs are added up.
type field []string

func (f field) String() string { return strings.Join(f, plus) }

// plus stands between the names of one field.
const plus = "+"

// text is the value of the field in one row; "" if the row lacks a part of it.
func (f field) text(row values) string {
	if len(f) == 0 {
		return ""
	}
	if len(f) == 1 {
		return row.value(f[0])
	}
	texts := make([]string, len(f))
	for i, name := range f {
		texts[i] = row.value(name)
		if texts[i] == "" {
			return ""
		}
	}
	return strings.Join(texts, " ")
}

// texts are the values of the rows that have the field.
func (f field) texts(rows []values) []string {
	var out []string
	for _, row := range rows {
		if text := f.text(row); !missing(text) {
			out = append(out, text)
		}
	}
	return out
}

// missing reports whether a text stands for no value. Servers write a dash.
func missing(text string) bool { return text == "" || text == "-" }

// values are those of one row by the names of their fields.
type values interface {
	// value is "" if the row has none.
	value(name string) string
}

// findField finds the fields that a file has for a name, or for several with plus signs between them.
func findField(wanted string, shape rowShape) (field, error) {
	if found := findName(wanted, shape); found != "" {
		return field{found}, nil
	}
	var out field
	for part := range strings.SplitSeq(wanted, plus) {
		found := findName(part, shape)
		if found == "" {
			return nil, quota.Unknown("field", part, shape.fields(), "")
		}
		out = append(out, found)
	}
	return out, nil
}

// findName prefers the exact name to one that differs in case and punctuation, and that to a number.
func findName(wanted string, shape rowShape) string {
	names := shape.fields()
	similar := ""
	for _, name := range names {
		if name == wanted {
			return name
		}
		if similar == "" && folded(name) == folded(wanted) {
			similar = name
		}
	}
	number, err := strconv.Atoi(wanted)
	if similar == "" && err == nil && shape.ordered() && number >= 1 && number <= len(names) {
		return names[number-1]
	}
	return similar
}

// folded leaves letters, digits and dots of a name: user_id, userId and User-ID are one.
func folded(name string) string {
	return strings.Map(func(letter rune) rune {
		if letter == '.' || unicode.IsLetter(letter) || unicode.IsDigit(letter) {
			return unicode.ToLower(letter)
		}
		return -1
	}, name)
}

// cells are the texts of a row by position.
type cells struct {
	columns map[string]int
	texts   []string
}

func (c cells) value(name string) string {
	column, ok := c.columns[name]
	if !ok || column >= len(c.texts) {
		return ""
	}
	return strings.TrimSpace(c.texts[column])
}
