// Package options reads and writes NAME:OPTION=VALUE,OPTION=VALUE: the one form on the command line of a thing with
// options, which is a strategy, a workload, a loop or the clients of stores.
package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

// Named is a name, and the options that were given to it.
type Named struct {
	Name  string
	Given quota.Options
}

// Declared are the options of a name, or an error if there is none of that name. It is asked before the options are
// read, which may be the rest of a URL with a password: errors about them show what was typed.
type Declared func(name string) ([]quota.Option, error)

// List reads things with commas between them. After the colon of a name, each part with an equals sign is one more of
// its options, and so is the mere name of an option of the type bool, which turns it on. A part that is neither is the
// next name. thing is what errors call one, e.g. "strategy".
func List(text, thing string, declared Declared) ([]Named, error) {
	r := reader{thing: thing, declared: declared}
	for part := range strings.SplitSeq(text, ",") {
		if err := r.add(strings.TrimSpace(part)); err != nil {
			return nil, err
		}
	}
	return r.all, nil
}

// One reads one thing. All that follows its colon are options.
func One(text, thing string, declared Declared) (Named, error) {
	name, list, some := strings.Cut(text, ":")
	r := reader{thing: thing, declared: declared}
	if err := r.begin(strings.TrimSpace(name)); err != nil || !some {
		return r.last(), err
	}
	for part := range strings.SplitSeq(list, ",") {
		if err := r.option(strings.TrimSpace(part)); err != nil {
			return r.last(), err
		}
	}
	return r.last(), nil
}

// reader reads a list part by part.
type reader struct {
	thing    string
	declared Declared
	all      []Named
	known    []quota.Option // of the last name
}

// last is what was named last.
func (r *reader) last() Named {
	if len(r.all) == 0 {
		return Named{}
	}
	return r.all[len(r.all)-1]
}

// begin takes a name.
func (r *reader) begin(name string) error {
	known, err := r.declared(name)
	if err != nil {
		return err
	}
	r.known = known
	r.all = append(r.all, Named{Name: name, Given: quota.Options{}})
	return nil
}

// add reads one part: an option, or a name with or without its first option.
func (r *reader) add(part string) error {
	name, first, some := strings.Cut(part, ":")
	switch {
	case strings.Contains(name, "="): // an option, whose value may contain a colon
		return r.option(part)
	case !some && r.turnsOn(part):
		return r.option(part)
	}
	if err := r.begin(name); err != nil || !some {
		return err
	}
	return r.option(first)
}

// turnsOn reports whether a word is an option of the type bool of the last name.
func (r *reader) turnsOn(word string) bool {
	return slices.ContainsFunc(r.known, func(option quota.Option) bool {
		return option.Name == word && option.Type == "bool"
	})
}

// option reads an option of the last name.
func (r *reader) option(text string) error {
	if len(r.all) == 0 {
		return fmt.Errorf("option %q follows no %s: write NAME:OPTION=VALUE", text, r.thing)
	}
	last := r.last()
	name, value, valued := strings.Cut(text, "=")
	if !valued && r.turnsOn(text) {
		value = "true"
		valued = true
	}
	if !valued || name == "" {
		return fmt.Errorf("option %q of %s is not of the form OPTION=VALUE", text, last.Name)
	}
	if _, again := last.Given[name]; again {
		return fmt.Errorf("option %q of %s is given twice", name, last.Name)
	}
	last.Given[name] = value
	return nil
}

// Text is a name with the options that were given: those that are declared in the order of declaration, and others
// after them by name.
func Text(name string, declared []quota.Option, given quota.Options) string {
	var order []string
	for _, option := range declared {
		order = append(order, option.Name)
	}
	for _, option := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(order, option) {
			order = append(order, option)
		}
	}
	text := name
	separator := ":"
	for _, option := range order {
		if value, some := given[option]; some {
			text += separator + option + "=" + value
			separator = ","
		}
	}
	return text
}
