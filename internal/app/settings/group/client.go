package group

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/quota"
)

// client is the setting of the clients of stores.
func (s *Settings) client() settings.Setting {
	return settings.Setting{Name: "client", Title: settings.Trouble, Value: settings.List(&s.Clients),
		Complete: s.completeClients}
}

// clientOptions are those of the clients of a run. A simulation opens no connections that could
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

// ReadClients takes over the options of --client.
func (s *Settings) ReadClients() error {
	given, err := s.givenToClients()
	if err != nil {
		return s.Wrong("client", err)
	}
	complete, err := quota.Complete(s.clientOptions(), given)
	if err != nil {
		return s.Wrong("client", err)
	}
	s.Pool = 0
	s.ClientRetries = 0
	s.Cold = false
	for name := range given {
		setConnection(&s.Config, name, complete)
	}
	return nil
}

// givenToClients are the options that --client gives.
func (s *Settings) givenToClients() (quota.Options, error) {
	if len(s.Clients) == 0 {
		return nil, nil
	}
	client, err := options.One("client:"+strings.Join(s.Clients, ","), "client", func(string) ([]quota.Option, error) {
		return s.clientOptions(), nil
	})
	return client.Given, err
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

// ClientHas reports whether --client gives the option.
func (s *Settings) ClientHas(option string) bool {
	given, _ := s.givenToClients()
	_, some := given[option]
	return some
}

// completeClients offers the options of clients.
func (s *Settings) completeClients(_ *cobra.Command, _ []string,
	typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	at := strings.LastIndexByte(typed, ',') + 1
	return completeOptions(s.clientOptions(), typed[:at], typed[at:]), settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}
