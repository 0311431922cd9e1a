package settings

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is what a setting holds. It is read from a flag and from a configuration file by the
// same function, so both have the same bounds and the same errors.
type Value struct {
	// parse checks a text, and returns what takes it over. Its error says what to give.
	parse   func(string) (take func(), err error)
	text    func() string
	kind    string // for help texts
	wants   string // what to give, in the imperative
	scalars []scalar
	items   *[]string // of a list
	choices []string  // of a text that is one of them
	held    any       // the pointer to a number
	quoted  bool      // in a configuration file, if it looks like something else
}

// scalar is a kind of value in a YAML file.
type scalar string

const (
	scalarNumber scalar = "a number"
	scalarText   scalar = "text"
	scalarBool   scalar = "a boolean"
)

// Set implements [pflag.Value].
func (v *Value) Set(text string) error {
	take, err := v.parse(text)
	if err == nil {
		take()
	}
	return err
}

// String implements [pflag.Value].
func (v *Value) String() string { return v.text() }

// Type implements [pflag.Value].
func (v *Value) Type() string { return v.kind }

// Wants says what to give.
func (v *Value) Wants() string { return v.wants }

// Take takes over the number of another value, whatever its bounds are.
func (v *Value) Take(other *Value) {
	reflect.ValueOf(v.held).Elem().Set(reflect.ValueOf(other.held).Elem())
}

func (v *Value) holds(s scalar) bool { return slices.Contains(v.scalars, s) }

// Items of a list; nil for other values.
func (v *Value) Items() []string {
	if v.items == nil {
		return nil
	}
	return *v.items
}

// form is how a number is read and written.
type form[T any] struct {
	parse  func(string) (T, error)
	format func(T) string
}

// number is a value with an order and bounds.
func number[T cmp.Ordered](p *T, low, high T, value Value, as form[T]) *Value {
	value.held = p
	value.text = func() string { return as.format(*p) }
	value.wants = cmp.Or(value.wants, fmt.Sprintf("give a whole number from %s to %s", as.format(low), as.format(high)))
	if value.scalars == nil {
		value.scalars = []scalar{scalarNumber}
	}
	value.parse = func(text string) (func(), error) {
		x, err := as.parse(text)
		if within := x >= low && x <= high; err != nil || !within { // which NaN is not
			return nil, errors.New(value.wants)
		}
		return func() { *p = x }, nil
	}
	return &value
}

// Whole is a whole number.
func Whole[T int | int64](p *T, low, high T) *Value {
	return number(p, low, high, Value{kind: "int"}, form[T]{func(text string) (T, error) {
		n, err := strconv.ParseInt(text, 10, reflect.TypeFor[T]().Bits())
		return T(n), err
	}, func(x T) string { return strconv.FormatInt(int64(x), 10) }})
}

// Seed is any whole number of 64 bits.
func Seed(p *uint64) *Value {
	return number(p, 0, math.MaxUint64, Value{kind: "int"}, form[uint64]{
		func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) },
		func(x uint64) string { return strconv.FormatUint(x, 10) },
	})
}

// Decimal is a number from 0 to high.
func Decimal(p *float64, high float64) *Value {
	value := Value{kind: "float", wants: "give a number from 0 to " + strconv.FormatFloat(high, 'f', -1, 64)}
	return number(p, 0, high, value, form[float64]{func(text string) (float64, error) {
		return strconv.ParseFloat(text, 64)
	}, decimalText})
}

func decimalText(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// Span is a length of time that is not negative.
func Span(duration *time.Duration, high time.Duration) *Value { return SpanFrom(duration, 0, high) }

// SpanFrom is a length of time from low to high.
func SpanFrom(duration *time.Duration, low, high time.Duration) *Value {
	text := func(d time.Duration) string {
		if d == 0 {
			return "0"
		}
		return d.String()
	}
	value := Value{
		kind: "duration", scalars: []scalar{scalarText, scalarNumber}, // a bare 0
		wants: fmt.Sprintf("give a time from %s to %v with its unit, e.g. 400ms or 1m30s", text(low), high),
	}
	return number(duration, low, high, value, form[time.Duration]{time.ParseDuration, text})
}

// errEmpty is the error of a value that is there and says nothing, as that of a
// variable of the shell that is not set.
var errEmpty = errors.New("it is empty: give a value, or leave it out")

// Text is any text except the empty one, or one of the choices if there are any.
func Text(text *string, choices ...string) *Value {
	if len(choices) == 0 {
		return Named(text, "text")
	}
	value := Named(text, strings.Join(choices, " or "))
	value.choices = choices
	plain := value.parse
	value.parse = func(s string) (func(), error) {
		if !slices.Contains(choices, s) {
			return nil, errors.New(hint(s, choices) + value.wants)
		}
		return plain(s)
	}
	return value
}

// Named is any text except the empty one; what says what to give.
func Named(text *string, what string) *Value {
	return &Value{
		kind: "string", wants: "give " + what, text: func() string { return *text }, quoted: true,
		scalars: []scalar{scalarText, scalarNumber}, // a cost of 5 is text that looks like a number
		parse: func(s string) (func(), error) {
			if s == "" {
				return nil, errEmpty
			}
			return func() { *text = s }, nil
		},
	}
}

// Checked is a text that must pass a check; it is taken over by what check returns.
func Checked(wants string, text func() string, parse func(string) (take func(), err error)) *Value {
	return &Value{kind: "string", scalars: []scalar{scalarText}, wants: wants, text: text, parse: parse}
}

// Or tries another reading of a text that value refuses. It returns nil and no error for a text
// that it does not know.
func Or(value *Value, other func(string) (take func(), err error)) *Value {
	out := *value
	out.parse = func(text string) (func(), error) {
		take, refused := value.parse(text)
		if refused == nil {
			return take, nil
		}
		if take, err := other(text); take != nil || err != nil {
			return take, err
		}
		return nil, refused
	}
	return &out
}

// maxItems is how often a flag may be repeated, and how long a list in a file may be.
const maxItems = 1000

// List is a flag that may be repeated. The first value replaces the default.
func List(texts *[]string) *Value {
	set := false
	return &Value{
		kind: "string", scalars: []scalar{scalarText}, wants: "give text or a list of texts", items: texts,
		text: func() string { return strings.Join(*texts, ",") },
		parse: func(text string) (func(), error) {
			switch {
			case text == "":
				return nil, errEmpty
			case set && len(*texts) >= maxItems:
				return nil, fmt.Errorf("it is given more than %d times: give fewer", maxItems)
			}
			return func() {
				if !set {
					*texts, set = nil, true
				}
				*texts = append(*texts, text)
			}, nil
		},
	}
}

// Bool is a flag without a value, and true or false in a file.
func Bool(p *bool) *Value {
	value := &Value{kind: "bool", scalars: []scalar{scalarBool}, wants: "give true or false",
		text: func() string { return strconv.FormatBool(*p) }}
	value.parse = func(text string) (func(), error) {
		x, err := strconv.ParseBool(text)
		if err != nil {
			return nil, errors.New(value.wants)
		}
		return func() { *p = x }, nil
	}
	return value
}
