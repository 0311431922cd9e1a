// Package settings makes flags, keys of a configuration file, --print-config, help texts and
// completion from one declaration of each setting.
package settings

import (
	"cmp"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/quota"
)

// Setting is a flag and a key of a configuration file.
type Setting struct {
	Name  string
	Short string // one letter; "" for none
	// Doc is the help text; a word in back quotes names the value. If it depends on nothing else, it stands in flags.txt,
	// and not here.
	Doc   string
	Value *Value
	// Title of the section of the help text.
	Title string
	// Common settings stand in the help text of a command that has many.
	Common bool
	// Computed settings have a default that depends on others: there is no value to print
	// if none was given.
	Computed bool
	// Parameter settings are numbers of a plan, in its configuration: a sweep varies them, and a preset has them.
	Parameter bool
	// Shorthand settings stand for others, which are printed instead.
	Shorthand bool
	// FlagOnly settings are no keys of a configuration file.
	FlagOnly bool
	// ArgumentOnly settings are no flags: they are given as arguments of the command, or in a configuration file.
	ArgumentOnly bool
	// Secret values may be a URL with a password, which can also come from the environment
	// variable PasswordFrom.
	Secret       bool
	PasswordFrom string
	// Complete offers values to a shell; nil offers the choices of the value, or names of files.
	Complete cobra.CompletionFunc
}

// Set is the settings of one command.
type Set struct {
	table []Setting
	cmd   *cobra.Command
	// places of the values that did not come from a flag, as "file:line", by name.
	places map[string]string
	// argued are the settings that were given as arguments.
	argued map[string]bool
}

// New makes the flags of a command.
func New(cmd *cobra.Command, groups ...[]Setting) *Set {
	set := &Set{table: slices.Concat(groups...), cmd: cmd, places: map[string]string{}, argued: map[string]bool{}}
	for i := range set.table {
		setting := &set.table[i]
		setting.Doc = cmp.Or(setting.Doc, textOf(cmd.Name(), setting.Name))
		if setting.ArgumentOnly {
			markArgument(cmd, setting.Name)
			continue
		}
		AddFlag(cmd.Flags(), *setting)
	}
	if len(set.table) > mostShort {
		cmd.Flags().Bool(helpAll, false, "help with all flags")
	}
	return set
}

// argumentAnnotation begins the annotation of a command for a setting that is no flag.
const argumentAnnotation = "argument:"

// markArgument has others know that a command has a setting which is no flag.
func markArgument(cmd *cobra.Command, name string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[argumentAnnotation+name] = "yes"
}

// has reports whether a command has a setting of that name, as a flag or as arguments.
func has(cmd *cobra.Command, name string) bool {
	_, argument := cmd.Annotations[argumentAnnotation+name]
	return argument || cmd.Flags().Lookup(name) != nil
}

// AddFlag makes the flag of one setting.
func AddFlag(flags *pflag.FlagSet, setting Setting) {
	complete := setting.Complete
	if complete == nil && setting.Value.choices != nil {
		complete = Words(setting.Value.choices...)
	}
	flag := flags.VarPF(completed{setting.Value, complete}, setting.Name, setting.Short, setting.Doc)
	flag.Annotations = map[string][]string{titleAnnotation: {setting.Title}}
	if setting.Common {
		flag.Annotations[commonAnnotation] = nil
	}
	if setting.Value.kind == "bool" {
		flag.NoOptDefVal = "true"
	}
}

// Lookup returns the setting with the name, or nil.
func (s *Set) Lookup(name string) *Setting {
	i := slices.IndexFunc(s.table, func(setting Setting) bool { return setting.Name == name })
	if i < 0 {
		return nil
	}
	return &s.table[i]
}

// All settings, in the order of declaration.
func (s *Set) All() []Setting { return s.table }

// keys of a configuration file.
func (s *Set) keys() (names []string) {
	for _, setting := range s.table {
		if !setting.FlagOnly {
			names = append(names, setting.Name)
		}
	}
	return names
}

// Rank says where a value comes from: a higher one wins over a lower one.
type Rank int

// The ranks.
const (
	ByDefault Rank = iota
	ByFile         // or by the environment
	ByFlag         // or by an argument
)

// Rank of the setting with that name.
func (s *Set) Rank(name string) Rank {
	switch {
	case s.cmd.Flags().Changed(name) || s.argued[name]:
		return ByFlag
	case s.places[name] != "":
		return ByFile
	}
	return ByDefault
}

// Given reports whether a setting has a value other than its default's.
func (s *Set) Given(name string) bool { return s.Rank(name) != ByDefault }

// SetArgs takes the arguments of the command for the values of a list.
func (s *Set) SetArgs(name string, args []string) {
	*s.Lookup(name).Value.items = args
	s.argued[name] = true
}

// Flags are the settings that were given as flags, as arguments of a command.
func (s *Set) Flags(except ...string) (args []string) {
	for _, setting := range s.table {
		if setting.ArgumentOnly || s.Rank(setting.Name) != ByFlag || slices.Contains(except, setting.Name) {
			continue
		}
		values := setting.Value.Items()
		if setting.Value.items == nil {
			values = []string{setting.Value.String()}
		}
		for _, text := range values {
			flag := "--" + setting.Name
			if setting.Value.kind != "bool" || text != "true" {
				flag += "=" + text
			}
			args = append(args, flag)
		}
	}
	return args
}

// SetFrom takes a value from a place such as an environment variable.
func (s *Set) SetFrom(place, name, value string) error {
	if err := s.Lookup(name).Value.Set(value); err != nil {
		return exit.Usagef("%s: %w", place, err)
	}
	s.places[name] = place
	return nil
}

// Wrong reports a value that does not fit, where the user wrote it.
func (s *Set) Wrong(name string, err error) error {
	switch {
	case exit.Decided(err): // it was interrupted
		return err
	case s.Rank(name) == ByFile:
		return exit.Usagef("%s: %s: %w", s.places[name], name, err)
	case s.Lookup(name).ArgumentOnly:
		return exit.With(exit.Usage, err)
	}
	return exit.Usagef("--%s: %w", name, err)
}

// NoFiles tells a shell that a value is not the name of a file.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// Words offers words that are the same at all times.
func Words(words ...string) cobra.CompletionFunc { return cobra.FixedCompletions(words, NoFiles) }

// completed is a flag's value, and what completes it; nil for names of files.
type completed struct {
	*Value
	complete cobra.CompletionFunc
}

// CompleteFlags tells cobra what completes flags, if a shell asks. Cobra keeps that for as
// long as the program lives, and with it the whole command, which a program may make many
// times.
func CompleteFlags(cmd *cobra.Command, _ []string) {
	if cmd.Name() != cobra.ShellCompRequestCmd {
		return
	}
	for _, c := range cmd.Root().Commands() {
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			if v, ok := flag.Value.(completed); ok && v.complete != nil {
				_ = c.RegisterFlagCompletionFunc(flag.Name, v.complete) // the flag is there, and was not told of before
			}
		})
	}
}

// BadFlag words what pflag finds wrong with a command line.
func BadFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	if empty, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && empty.GetSpecifiedShortnames() == "" {
		wanted := "give one"
		if v, ok := empty.GetFlag().Value.(interface{ Wants() string }); ok {
			wanted = v.Wants()
		}
		return exit.Usagef("--%s has no value: %s (see %s --help)", empty.GetSpecifiedName(), wanted, cmd.CommandPath())
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		name := unknown.GetSpecifiedName()
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		return exit.Usagef("unknown flag --%s%s (see %s --help)", name, nearest(name, names, "--"), cmd.CommandPath())
	}
	return exit.Usagef("%w (see %s --help)", err, cmd.CommandPath())
}

// hint is a question in front of what to give, or nothing.
func hint(name string, names []string) string {
	if best := quota.Nearest(name, names); best != "" {
		return "did you mean " + best + "? "
	}
	return ""
}

// nearest suggests the name that was probably meant, or nothing.
func nearest(name string, names []string, prefix string) string {
	if best := quota.Nearest(name, names); best != "" {
		return ": did you mean " + prefix + best + "?"
	}
	return ""
}
