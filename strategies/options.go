package strategies

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is a parameter of a strategy, written name:option=value.
type Option struct {
	Name string
	Doc  string
	// Default is the value where none is given; it must be valid.
	Default string
	// Values lists all valid ones; empty leaves it to Type.
	Values []string
	// Type of free values: "int", "duration", "bool" or "" for text.
	Type string
}

func (o Option) check(v string) error {
	if len(o.Values) > 0 {
		if !slices.Contains(o.Values, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(o.Values, ", "))
		}
		return nil
	}
	var err error
	switch o.Type {
	case "int":
		_, err = strconv.ParseInt(v, 10, 64)
	case "duration":
		_, err = time.ParseDuration(v)
	case "bool":
		_, err = strconv.ParseBool(v)
	}
	if err != nil {
		return fmt.Errorf("%q is not a valid %s", v, o.Type)
	}
	return nil
}

// Options are the values of a strategy's options by name.
type Options map[string]string

// Duration returns an option declared with Type "duration".
func (o Options) Duration(name string) time.Duration {
	d, err := time.ParseDuration(o[name])
	if err != nil {
		panic("option " + name + " is not a duration: " + o[name])
	}
	return d
}

// Int returns an option declared with Type "int".
func (o Options) Int(name string) int64 {
	n, err := strconv.ParseInt(o[name], 10, 64)
	if err != nil {
		panic("option " + name + " is not a whole number: " + o[name])
	}
	return n
}

// Bool returns an option declared with Type "bool".
func (o Options) Bool(name string) bool {
	b, err := strconv.ParseBool(o[name])
	if err != nil {
		panic("option " + name + " is not true or false: " + o[name])
	}
	return b
}

// Selection is a registered strategy with a value for each of its options.
type Selection struct {
	*Meta
	Options Options
}

// String renders the selection as the command line takes it: the name, and the
// options that differ from their defaults in the order of declaration.
func (s Selection) String() string {
	var b strings.Builder
	b.WriteString(s.Name)
	sep := byte(':')
	for _, o := range s.Meta.Options {
		if v := s.Options[o.Name]; v != o.Default {
			b.WriteByte(sep)
			b.WriteString(o.Name + "=" + v)
			sep = ','
		}
	}
	return b.String()
}

// Select completes the given options with defaults. Unknown names and invalid
// values are errors that name the valid ones.
func (m *Meta) Select(given Options) (Selection, error) {
	s := Selection{Meta: m, Options: Options{}}
	for _, o := range m.Options {
		s.Options[o.Name] = o.Default
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(m.Options, func(o Option) bool { return o.Name == name })
		if i < 0 {
			return s, fmt.Errorf("strategy %s has no option %q%s", m.Name, name, m.optionNames())
		}
		if err := m.Options[i].check(given[name]); err != nil {
			return s, fmt.Errorf("strategy %s: option %s: %w", m.Name, name, err)
		}
		s.Options[name] = given[name]
	}
	return s, nil
}

func (m *Meta) optionNames() string {
	if len(m.Options) == 0 {
		return ": it has none"
	}
	names := make([]string, len(m.Options))
	for i, o := range m.Options {
		names[i] = o.Name
	}
	return ": it has " + strings.Join(names, ", ")
}
