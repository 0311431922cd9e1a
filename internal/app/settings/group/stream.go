package group

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// stream is the workload.
type stream struct {
	Workload string // as NAME:OPTION=VALUE
	Trace    string // the file that the workload of [replay] replays; "" if that is not said here
	// TraceFields are the fields of that file that are read; "" if the format has them.
	TraceFields string
	// Introduction are lines about the stream, to be read before it is used.
	Introduction []string
}

// The options of a workload that --trace and --trace-fields stand for.
const (
	traceOption  = "trace"
	fieldsOption = "trace-fields"
)

// Stream is the workload.
func (s *Settings) Stream() []settings.Setting {
	return []settings.Setting{
		{Name: "workload", Common: true, Title: settings.What, Value: settings.Named(&s.Workload, "the name of a workload"),
			Complete: completeWorkloads},
		{Name: "trace", Common: true, Title: settings.What, Computed: true,
			Value: settings.Named(&s.Trace, "the name of a file")},
		{Name: "trace-fields", Title: settings.What, Computed: true, Complete: completeFields,
			Value: settings.Named(&s.TraceFields, "time=FIELD,subject=FIELD,cost=FIELD")},
		{Name: "limit", Common: true, Title: settings.What, Computed: true, Parameter: true,
			Value: settings.Whole(&s.Config.Policy.Limit, 1, quota.MaxLimit)},
	}
}

// replay is the workload that --trace asks for; nil if none is registered.
func replay() *workloads.Meta {
	for _, meta := range workloads.All() {
		if meta.NeedsTrace && meta.Takes(traceOption) {
			return meta
		}
	}
	return nil
}

// workloadOptions are those of the workload with the name.
func workloadOptions(name string) ([]quota.Option, error) {
	meta, err := workloads.Lookup(name)
	if err != nil {
		return nil, err
	}
	return meta.Options, nil
}

// named reads --workload, and whatever --trace adds to it. Values of options are not looked at.
func (s *Settings) named() (meta *workloads.Meta, given quota.Options, err error) {
	one, err := options.One(s.Workload, "workload", workloadOptions)
	if err == nil {
		meta, err = workloads.Lookup(one.Name)
	}
	if err != nil {
		return nil, nil, s.Wrong("workload", err)
	}
	for _, own := range []struct{ option, value string }{{traceOption, s.Trace}, {fieldsOption, s.TraceFields}} {
		if own.value == "" {
			continue
		}
		if err := addOption(meta, one.Given, own.option, own.value); err != nil {
			return nil, nil, s.Wrong(own.option, err)
		}
	}
	return meta, one.Given, nil
}

// addOption adds an option that has a flag of its own to those of --workload.
func addOption(meta *workloads.Meta, given quota.Options, name, value string) error {
	i := slices.IndexFunc(meta.Options, func(option quota.Option) bool { return option.Name == name })
	if i < 0 {
		return fmt.Errorf("the workload %s replays no trace: give --trace FILE and no --workload, or leave --%s out",
			meta.Name, name)
	}
	if other, twice := given[name]; twice && other != value {
		return fmt.Errorf("--workload names a %s as well: give one of them", name)
	}
	given[name] = value
	return meta.Options[i].Accepts(value)
}

// Chosen is the workload with the options that were given for it.
func (s *Settings) Chosen() (meta *workloads.Meta, given quota.Options, err error) {
	meta, given, err = s.named()
	if err != nil {
		return nil, nil, err
	}
	if _, err := quota.Complete(meta.Options, given); err != nil {
		return nil, nil, s.Wrong("workload", fmt.Errorf("%s: %w", meta.Name, err))
	}
	return meta, given, nil
}

// SpeaksOf reports whether --workload gives the option, or --trace does.
func (s *Settings) SpeaksOf(option string) bool {
	_, given, err := s.named()
	if err != nil {
		return false
	}
	_, spoken := given[option]
	return spoken
}

// AdoptWorkload takes the workload of a configuration, except for what is given.
func (s *Settings) AdoptWorkload(meta *workloads.Meta, own quota.Options) error {
	switch {
	case s.Trace != "":
		return nil
	case !s.Given("workload"):
		s.Workload = options.Text(meta.Name, meta.Options, own)
		return nil
	}
	named, given, err := s.named()
	if err != nil || named != meta {
		return err
	}
	all := maps.Clone(own)
	if all == nil {
		all = quota.Options{}
	}
	maps.Copy(all, given)
	s.Workload = options.Text(meta.Name, meta.Options, all)
	return nil
}

// introduction says how a trace was read, and what is doubtful about the stream.
func introduction(stream workloads.Stream, info workloads.Info) (lines []string) {
	if trace := info.Trace; trace != nil {
		line := fmt.Sprintf("trace: %s: %s, %s of %s", trace.File, trace.Format,
			format.Plural(int64(trace.Used), "request", "requests"),
			format.Plural(int64(workloads.Subjects(stream)), "subject", "subjects"))
		if len(trace.Damaged) > 0 {
			first := trace.Damaged[0]
			damaged := format.Plural(int64(len(trace.Damaged)), "row", "rows")
			dropped := format.Count(int64(trace.Dropped))
			line += fmt.Sprintf("; %s damaged, %s dropped (line %d: %s)", damaged, dropped, first.Line, first.Reason)
		}
		lines = append(lines, line)
	}
	for _, doubt := range info.Warnings {
		lines = append(lines, "warning: "+doubt)
	}
	return lines
}

// unreadable reports a file that could not be read where it was named.
func (s *Settings) unreadable(file *fs.PathError) error {
	err := fmt.Errorf("cannot read %s: %w", file.Path, file.Err)
	_, given, wrong := s.named()
	switch {
	case wrong != nil || given[traceOption] != file.Path:
		return exit.With(exit.Usage, err)
	case s.Trace != "":
		return s.Wrong("trace", err)
	}
	return s.Wrong("workload", err)
}

// completeFields offers what a trace is read for.
func completeFields(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"time=", "subject=", "cost="}, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}

// completeWorkloads offers the workloads, and behind a colon the options of one.
func completeWorkloads(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	name, list, inOptions := strings.Cut(typed, ":")
	if inOptions {
		declared, err := workloadOptions(name)
		if err != nil {
			return nil, settings.NoFiles
		}
		last := strings.LastIndexByte(list, ',') + 1
		return completeOptions(declared, name+":"+list[:last], list[last:]),
			settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
	var out []cobra.Completion
	for _, meta := range workloads.All() {
		out = append(out, cobra.CompletionWithDesc(meta.Name, meta.Doc))
	}
	return out, settings.NoFiles
}

// completeOptions offers options behind what is done, or the values of the one that was begun.
func completeOptions(declared []quota.Option, done, part string) []cobra.Completion {
	name, _, inValue := strings.Cut(part, "=")
	var out []cobra.Completion
	for _, option := range declared {
		switch {
		case !inValue:
			out = append(out, cobra.CompletionWithDesc(done+option.Name+"=", strings.ReplaceAll(option.Doc, "`", "")))
		case option.Name == name:
			for _, text := range offered(option) {
				out = append(out, done+option.Name+"="+text)
			}
		}
	}
	return out
}

// offered are values of an option, or how they begin.
func offered(option quota.Option) []string {
	switch {
	case len(option.Values) > 0:
		return option.Values
	case len(option.Offer) > 0:
		return option.Offer
	case option.Type == "bool":
		return []string{"true", "false"}
	}
	return []string{option.Default}
}
