package group

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/workloads"
)

// stream is the workload.
type stream struct {
	Workload string // as NAME:OPTION=VALUE
	Trace    string // the file that the workload of [replay] replays; "" if that is not said here
}

// traceOption is the option of a workload that --trace stands for.
const traceOption = "trace"

// Stream is the workload.
func (s *Settings) Stream() []settings.Setting {
	return []settings.Setting{
		{Name: "workload", Common: true, Title: settings.What, Value: settings.Named(&s.Workload, "the name of a workload"),
			Complete: completeWorkloads},
		{Name: "trace", Title: settings.What, Value: settings.Named(&s.Trace, "the name of a file"), Computed: true},
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
	switch {
	case err != nil:
		return nil, nil, s.Wrong("workload", err)
	case s.Trace == "":
		return meta, one.Given, nil
	case !meta.Takes(traceOption):
		return nil, nil, s.Wrong("trace", fmt.Errorf("the workload %s replays no trace: leave one of the two out", meta.Name))
	}
	if other, twice := one.Given[traceOption]; twice && other != s.Trace {
		return nil, nil, s.Wrong("trace", errors.New("--workload names a trace as well: give one of them"))
	}
	one.Given[traceOption] = s.Trace
	return meta, one.Given, nil
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
