package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// optionSettings are the settings of the options that the registered workloads
// declare, in the order of declaration. Options of the same name are one setting.
func (s *settings) optionSettings() []setting {
	var out []setting
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if s.options[o.Name] != nil {
				continue
			}
			v := new(string)
			s.options[o.Name] = v
			out = append(out, setting{
				name: o.Name, value: &option{o: o, p: v}, computed: true, complete: completeOffers(o), doc: o.Doc + optionNote(o.Name),
			})
		}
	}
	return out
}

// optionNote says what an option is where it is not given, and which workloads
// take it where few do.
func optionNote(name string) string {
	var defaults, takers []string
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if o.Name == name {
				defaults, takers = append(defaults, o.Default), append(takers, w.Name)
			}
		}
	}
	var notes []string
	slices.Sort(defaults)
	switch defaults = slices.Compact(defaults); {
	case len(defaults) > 1:
		notes = append(notes, "default: the workload's")
	case defaults[0] != "":
		notes = append(notes, "default "+defaults[0])
	}
	if 2*len(takers) <= len(workloads.All()) {
		notes = append(notes, strings.Join(takers, ", ")+" only")
	}
	if notes == nil {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// completeOffers suggests values of an option. Forms are offered as far as they
// can be typed.
func completeOffers(o quota.Option) cobra.CompletionFunc {
	offers := o.Offer
	if len(o.Values) > 0 {
		offers = o.Values
	}
	if len(offers) == 0 {
		return nil
	}
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offers, noFiles | cobra.ShellCompDirectiveNoSpace
	}
}

// option is a value of a workload's option; "" where none is given.
type option struct {
	o quota.Option
	p *string
}

func (v *option) Set(text string) error {
	if text == "" {
		return errors.New(v.wanted())
	}
	if err := v.o.Accepts(text); err != nil {
		if v.o.Check != nil {
			return err
		}
		return errors.New(v.wanted())
	}
	*v.p = text
	return nil
}

func (v *option) String() string { return *v.p }

func (v *option) Type() string {
	switch v.o.Type {
	case "", "file":
		return "string"
	}
	return v.o.Type
}

func (v *option) holds(s scalar) bool {
	switch v.o.Type {
	case "int", "float":
		return s == scalarNumber
	case "bool":
		return s == scalarBool
	}
	return s == scalarText || s == scalarNumber // a cost of 5 is text that looks like a number
}

func (v *option) wanted() string { return v.o.Wanted() }

// stream are the workload's own parameters.
func (s *settings) stream() workloads.Params {
	p := workloads.Params{Speed: s.speed}
	for name, v := range s.options {
		if *v != "" {
			p.Set(name, *v)
		}
	}
	return p
}

// implied is the workload that a given option stands for because the workload
// cannot do without it: a trace file asks for a replay. It is "" where no such
// option is given.
func (s *settings) implied() (workload, option string) {
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if o.Required && *s.options[o.Name] != "" {
				return w.Name, o.Name
			}
		}
	}
	return "", ""
}

// unreadable reports a file that could not be read at the option that names it.
func (s *settings) unreadable(path string, err error) error {
	for name, v := range s.options {
		if o, ok := s.lookup(name).value.(*option); ok && o.o.Type == "file" && *v == path {
			return s.wrong(name, fmt.Errorf("cannot read %s: %w", path, err))
		}
	}
	return fail(ExitUsage, err)
}
