package quota

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is a parameter that a strategy or a workload declares. It is data:
// command lines, configuration files and help texts are made from it.
type Option struct {
	Name string
	// Doc is one line for people, without a full stop. A word in back quotes names
	// the value.
	Doc string
	// Default is the value if none is given. It must be valid, and is empty
	// if the option is required.
	Default string
	// Values lists all valid ones; empty leaves it to Type.
	Values []string
	// Type of free values: "int", "float", "duration", "bool", "file" or "" for
	// text.
	Type string
	// Min and Max are the least and the largest valid value of an int, a float or
	// a duration, written as values are. Empty means [MaxLimit] either way for a number,
	// and [MaxLength] for a duration, within which sums do not overflow.
	Min, Max string
	// Check says what is wrong with a value of the right type; nil accepts all.
	Check func(value string) error
	// Required options have no default: a value must be given.
	Required bool
	// Offer lists values, or beginnings of values, that a shell may suggest.
	Offer []string
}

// Validate reports what is wrong with the declaration.
func (o Option) Validate() error {
	types := []string{"", "int", "float", "duration", "bool", "file"}
	switch {
	case o.Name == "" || strings.ContainsAny(o.Name, ",:= "):
		return fmt.Errorf("option name %q is empty or contains one of \",:= \"", o.Name)
	case !slices.Contains(types, o.Type):
		return fmt.Errorf("option %s has the type %q: one of %s, or none for text", o.Name, o.Type,
			strings.Join(types[1:], ", "))
	case o.Required && o.Default != "":
		return fmt.Errorf("option %s is required and has a default", o.Name)
	}
	for _, text := range []string{o.Min, o.Max} {
		if text == "" {
			continue
		}
		if _, err := o.number(text); err != nil {
			return fmt.Errorf("option %s: bound %w", o.Name, err)
		}
	}
	if o.Required {
		return nil
	}
	if err := o.Accepts(o.Default); err != nil {
		return fmt.Errorf("default of option %s: %w", o.Name, err)
	}
	return nil
}

// Accepts returns nil for a valid value, and otherwise what is wrong with it.
func (o Option) Accepts(text string) error {
	if len(o.Values) > 0 && !slices.Contains(o.Values, text) {
		return fmt.Errorf("%q is none of %s", text, listed(o.Values))
	}
	switch o.Type {
	case "int", "float", "duration":
		if err := o.within(text); err != nil {
			return err
		}
	case "bool":
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is not a valid bool", text)
		}
	case "file":
		if text == "" {
			return errors.New("a file needs a name")
		}
	}
	if o.Check != nil {
		return o.Check(text)
	}
	return nil
}

// within reports a value of an ordered type that is malformed or out of bounds.
func (o Option) within(text string) error {
	value, err := o.number(text)
	if err != nil {
		return err
	}
	low, high := o.bounds()
	if low <= value && value <= high {
		return nil
	}
	// Beyond a bound that the option does not declare, there is no span to name.
	if value < low && o.Min == "" || value > high && o.Max == "" {
		return fmt.Errorf("%s is too large a number", text)
	}
	return fmt.Errorf("%s is not %s", text, o.span())
}

// bounds are the smallest and the largest value: what the option declares, or else what any number may be.
func (o Option) bounds() (low, high float64) {
	high = float64(MaxLimit)
	if o.Type == "duration" {
		high = float64(MaxLength)
	}
	low = -high
	// Validate has checked that both can be read.
	if o.Min != "" {
		low, _ = o.number(o.Min)
	}
	if o.Max != "" {
		high, _ = o.number(o.Max)
	}
	return low, high
}

// number is a value of an ordered type, to compare it with bounds.
func (o Option) number(text string) (value float64, err error) {
	switch o.Type {
	case "int":
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		value = float64(n)
	case "duration":
		var duration time.Duration
		duration, err = time.ParseDuration(text)
		value = float64(duration)
	case "float":
		value, err = strconv.ParseFloat(text, 64)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			err = strconv.ErrRange
		}
	default:
		err = errors.New("not ordered")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a valid %s", text, o.Type)
	}
	return value, nil
}

// span is "from A to B", "A or more", "at most B" or "" without bounds.
func (o Option) span() string {
	switch {
	case o.Min != "" && o.Max != "":
		return "from " + o.Min + " to " + o.Max
	case o.Min != "":
		return o.Min + " or more"
	case o.Max != "":
		return "at most " + o.Max
	}
	return ""
}

// Wanted says in the imperative what to give as a value.
func (o Option) Wanted() string {
	if len(o.Values) > 0 {
		return "give " + strings.Join(o.Values, " or ")
	}
	what := map[string]string{
		"int": "a whole number", "float": "a number", "duration": "a time",
		"bool": "true or false", "file": "the name of a file",
	}[o.Type]
	if what == "" {
		return "give text"
	}
	if text := o.span(); text != "" {
		if !strings.HasPrefix(text, "from") {
			text = ", " + text
		} else {
			text = " " + text
		}
		what += text
	}
	if o.Type == "duration" {
		what += " with its unit, e.g. 400ms or 1m30s"
	}
	return "give " + what
}

// Options are values of options by name.
type Options map[string]string

// Complete returns a value for each of the declared options: the given one, or the
// default. Unknown names, invalid values and required options without a value are
// errors that name what is valid.
func Complete(declared []Option, given Options) (Options, error) {
	out := make(Options, len(declared))
	for _, option := range declared {
		out[option.Name] = option.Default
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(declared, func(option Option) bool { return option.Name == name })
		if i < 0 {
			return out, noOption(name, declared)
		}
		if err := declared[i].Accepts(given[name]); err != nil {
			err = fmt.Errorf("option %s: %w", name, err)
			// else the error lists what is valid
			if option := declared[i]; option.Check == nil && option.Values == nil && option.Type != "" {
				err = fmt.Errorf("%w: %s", err, option.Wanted())
			}
			return out, err
		}
		out[name] = given[name]
	}
	for _, option := range declared {
		if _, ok := given[option.Name]; option.Required && !ok {
			return out, fmt.Errorf("option %s is required: %s", option.Name, option.Wanted())
		}
	}
	return out, nil
}

func noOption(name string, declared []Option) error {
	if len(declared) == 0 {
		return fmt.Errorf("no option %q: it has none", name)
	}
	names := make([]string, len(declared))
	for i, option := range declared {
		names[i] = option.Name
	}
	hint := ""
	if n := Nearest(name, names); n != "" {
		hint = " (did you mean " + n + "?)"
	}
	return fmt.Errorf("no option %q%s: it has %s", name, hint, listed(names))
}

// value reads an option that was checked.
func value[T any](options Options, name, what string, parse func(string) (T, error)) T {
	v, err := parse(options[name])
	if err != nil {
		panic("option " + name + " is not " + what + ": " + options[name])
	}
	return v
}

// Duration returns an option declared with Type "duration".
func (o Options) Duration(name string) time.Duration {
	return value(o, name, "a duration", time.ParseDuration)
}

// Int returns an option declared with Type "int".
func (o Options) Int(name string) int64 {
	return value(o, name, "a whole number", func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) })
}

// Float returns an option declared with Type "float".
func (o Options) Float(name string) float64 {
	return value(o, name, "a number", func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
}

// Bool returns an option declared with Type "bool".
func (o Options) Bool(name string) bool { return value(o, name, "true or false", strconv.ParseBool) }
