package group

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// stream is the workload.
type stream struct {
	Workload string
	Limit    int64
	Speed    float64
	// options of workloads that were given, by name; "" if not.
	options map[string]*string
}

// Stream is the workload, with the options that the registered workloads declare. Options of
// the same name are one setting.
func (s *Settings) Stream() []settings.Setting {
	out := []settings.Setting{
		{Name: "workload", Common: true, Title: settings.What, Value: settings.Text(&s.Workload), Complete: completeWorkloads},
		{Name: "limit", Common: true, Title: settings.What, Value: settings.Whole(&s.Limit, 1, quota.MaxLimit), Computed: true},
	}
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if s.options[o.Name] != nil {
				continue
			}
			s.options[o.Name] = new(string)
			out = append(out, settings.Setting{
				Name: o.Name, Title: settings.Workload, Value: settings.Option(o, s.options[o.Name]), Computed: true,
				Complete: completeOffers(o), Doc: o.Doc + optionNote(o.Name),
			})
		}
	}
	return append(out, settings.Setting{
		Name: "speed", Title: settings.Workload, Value: settings.DecimalOrNone(&s.Speed, harness.MinSpeed, harness.MaxSpeed),
	})
}

// optionNote says what an option is if it is not given, and which workloads
// take it if few do.
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

func completeWorkloads(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, m := range workloads.All() {
		out = append(out, cobra.CompletionWithDesc(m.Name, m.Doc))
	}
	return out, settings.NoFiles
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
	return cobra.FixedCompletions(offers, settings.NoFiles|cobra.ShellCompDirectiveNoSpace)
}

// params are the workload's own parameters.
func (s *Settings) params() workloads.Params {
	p := workloads.Params{Speed: s.Speed}
	for name, v := range s.options {
		if *v != "" {
			p.Set(name, *v)
		}
	}
	return p
}

// SetOption gives an option of workloads its value.
func (s *Settings) SetOption(name, value string) { *s.options[name] = value }

// Replayed is the workload that a given option stands for because the workload
// cannot do without it: a trace file asks for a replay. It is "" if no such
// option is given.
func (s *Settings) Replayed() (workload, option string) {
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if o.Required && *s.options[o.Name] != "" {
				return w.Name, o.Name
			}
		}
	}
	return "", ""
}
