package group

import (
	"slices"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/quota"
)

// parameters are the settings that stand in the configuration as they are given.
func (s *Settings) parameters() []settings.Setting {
	all := slices.Concat(s.Subject(), s.Stream(), s.Load(), s.Trouble())
	return slices.DeleteFunc(all, func(setting settings.Setting) bool { return !setting.Parameter })
}

// Parameters are the names of all numbers of a measurement that [Vary] sets.
func Parameters() (names []string) {
	s := New(Run)
	for _, setting := range s.parameters() {
		names = append(names, setting.Name)
	}
	for _, option := range s.clientOptions() {
		names = append(names, option.Name)
	}
	return names
}

// Vary sets one of [Parameters] in the configuration of a command, from a text that its setting reads, or that its
// option of --client takes. It is not known if the command has none of that name.
func Vary(command Command, config *measure.Config, name, text string) (known bool, err error) {
	s := New(command)
	s.Config = *config
	for _, setting := range s.parameters() {
		if setting.Name == name {
			err = setting.Value.Set(text)
			*config = s.Config
			return true, err
		}
	}
	for _, option := range s.clientOptions() {
		if option.Name == name {
			complete, err := quota.Complete([]quota.Option{option}, quota.Options{name: text})
			if err == nil {
				setConnection(config, name, complete)
			}
			return true, err
		}
	}
	return false, nil
}

// Adopt has the parameters that are wanted say what a configuration does.
func (s *Settings) Adopt(config *measure.Config, wanted func(name string) bool) {
	other := New(s.command)
	other.Config = *config
	others := other.parameters()
	for i, setting := range s.parameters() {
		if wanted(setting.Name) {
			setting.Value.Take(others[i].Value)
		}
	}
}
