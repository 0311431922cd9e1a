package group

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// client is the setting of the clients of stores.
func (s *Settings) client() settings.Setting {
	return settings.Setting{Name: "client", Title: settings.Trouble, Value: settings.List(&s.Clients),
		Complete: s.completeClients}
}

// clientOptions are those of the clients of a run, which all kinds have. A simulation opens no connections that could
// be pooled or that could break.
func (s *Settings) clientOptions() []quota.Option {
	cold := quota.Option{Name: "cold", Type: "bool", Default: "false",
		Doc: "open a connection for each command, pipeline or transaction"}
	if s.command == Sim {
		return []quota.Option{cold}
	}
	return []quota.Option{
		{Name: "pool", Type: "int", Min: "1", Max: strconv.Itoa(bounds.MaxPool), Default: "64",
			Doc: "connections per instance and store"},
		{Name: "retries", Type: "int", Min: "0", Max: strconv.Itoa(bounds.MaxRetries), Default: "0",
			Doc: "how often a client of Redis repeats a failed command"},
		cold,
	}
}

// readClients reads --client: the kinds, and the options that they have in common.
func (s *Settings) readClients() (kinds []strategies.Client, err error) {
	declared := s.clientOptions()
	all, err := options.List(strings.Join(s.Clients, ","), "kind of client", func(name string) ([]quota.Option, error) {
		_, err := strategies.ParseClient(name)
		return declared, err
	})
	if err != nil {
		return nil, s.Wrong("client", err)
	}
	given := quota.Options{}
	for _, one := range all {
		kind := strategies.Client(one.Name)
		if slices.Contains(kinds, kind) {
			return nil, s.Wrong("client", fmt.Errorf("%s is given twice", kind))
		}
		kinds = append(kinds, kind)
		for name, value := range one.Given {
			if _, again := given[name]; again {
				return nil, s.Wrong("client", fmt.Errorf("%s is given for two kinds, and all kinds have the same: give it once",
					name))
			}
			given[name] = value
		}
	}
	if s.command == Sim && !slices.Equal(kinds, []strategies.Client{strategies.PlainClient}) {
		return nil, s.Wrong("client", errors.New("kinds of clients differ in a measurement alone: give plain"))
	}
	complete, err := quota.Complete(declared, given)
	if err != nil {
		return nil, s.Wrong("client", err)
	}
	s.Pool = 0
	s.ClientRetries = 0
	s.Cold = false
	for name := range given {
		setConnection(&s.Config, name, complete)
	}
	return kinds, nil
}

// setConnection takes one of the options of clients over.
func setConnection(config *measure.Config, name string, from quota.Options) {
	switch name {
	case "pool":
		config.Pool = int(from.Int(name))
	case "retries":
		config.ClientRetries = int(from.Int(name))
	case "cold":
		config.Cold = from.Bool(name)
	}
}

// ReadClients takes over the options of --client.
func (s *Settings) ReadClients() error {
	_, err := s.readClients()
	return err
}

// ClientHas reports whether --client gives the option.
func (s *Settings) ClientHas(option string) bool {
	all, err := options.List(strings.Join(s.Clients, ","), "kind of client", func(string) ([]quota.Option, error) {
		return s.clientOptions(), nil
	})
	return err == nil && slices.ContainsFunc(all, func(one options.Named) bool {
		_, some := one.Given[option]
		return some
	})
}

// completeClients offers the kinds of clients, and behind a colon their options.
func (s *Settings) completeClients(_ *cobra.Command, _ []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if at := strings.LastIndexAny(typed, ":,"); at >= 0 && strings.Contains(typed, ":") {
		return completeOptions(s.clientOptions(), typed[:at+1], typed[at+1:]),
			settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
	done := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []cobra.Completion
	for _, name := range format.Strings(strategies.Clients()) {
		out = append(out, done+name)
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}
