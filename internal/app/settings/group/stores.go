package group

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/all" // what the flags can name
)

// storeChoice is which stores are used.
type storeChoice struct {
	From  map[string]*string // by driver
	kinds []string           // those that the command can use
	Named []string           // of --store
}

// Stores are flags for kinds of stores, which are all unless some are named, and one for the kinds without a flag and for further
// stores.
func (s *Settings) Stores(kinds ...string) []settings.Setting {
	var table []settings.Setting
	var passwords []string
	for _, d := range stores.Drivers() {
		from := d.Default
		if s.command == Sim || s.command == Own {
			from = "" // a store in this process, or none
		}
		s.From[d.Name] = &from
		if kinds != nil && !slices.Contains(kinds, d.Name) {
			continue
		}
		if s.command == Own && d.URLs == "" { // users have none of their own
			continue
		}
		s.kinds = append(s.kinds, d.Name)
		if d.PasswordEnv != "" {
			passwords = append(passwords, d.PasswordEnv)
		}
		if !d.HasFlag() {
			continue
		}
		table = append(table, settings.Setting{Name: d.Name, Title: settings.Stores, Value: settings.Text(&from), Secret: true,
			Common:       true,
			PasswordFrom: d.PasswordEnv,
			Complete: cobra.FixedCompletions(by(s, choices(d, ""), map[Command][]cobra.Completion{Own: nil}),
				settings.NoFiles|cobra.ShellCompDirectiveNoSpace), Computed: from == "",
			Doc: by(s, d.Title+": "+d.Forms()+", or as "+StoreVariable(d.Name)+" says", texts{
				Own: "`URL` of a " + d.Title + " of yours (" + d.URLs + "), or as " + StoreVariable(d.Name) + " says",
				Sim: "a real Redis that carries the commands out, at virtual moments: process, container or a URL (default: a table in this process)",
			})})
	}
	if kinds == nil {
		table = append(table, settings.Setting{Name: "store", Title: settings.Stores, Value: settings.List(&s.Named), Secret: true,
			PasswordFrom: strings.Join(passwords, " or "), Complete: completeNamedStore})
	}
	return table
}

// StoreVariable is the environment variable that names the main store of a driver.
func StoreVariable(driver string) string { return "QUOTABENCH_" + strings.ToUpper(driver) }

// FromEnvironment takes stores from the environment that neither a flag nor a configuration
// file names. Those are for commands that use real stores.
func (s *Settings) FromEnvironment() error {
	for _, d := range stores.Drivers() {
		name := StoreVariable(d.Name)
		v := os.Getenv(name)
		named := slices.ContainsFunc(s.Named, func(text string) bool { return strings.HasPrefix(text, d.Name+"=") })
		if s.command == Sim || !slices.Contains(s.kinds, d.Name) || v == "" || s.Given(d.Name) || named {
			continue
		}
		if s.command == Own && !strings.Contains(v, "://") { // words such as process name no server of others
			continue
		}
		if !d.HasFlag() {
			s.Named = append(s.Named, d.Name+"="+v)
			continue
		}
		if err := s.SetFrom(name, d.Name, v); err != nil {
			return err
		}
	}
	return nil
}

// Specs are the stores that the settings ask for.
func (s *Settings) Specs() ([]stores.Spec, error) {
	if err := s.FromEnvironment(); err != nil {
		return nil, err
	}
	named, err := stores.ParseSpecs(s.Named)
	if err != nil {
		return nil, s.Wrong("store", err)
	}
	var specs []stores.Spec
	for _, d := range stores.Drivers() {
		again := slices.ContainsFunc(named, func(x stores.Spec) bool { return x.Name == d.Name })
		from := *s.From[d.Name]
		switch {
		case again && s.Given(d.Name):
			return nil, s.Wrong("store", fmt.Errorf("%s is given by --%s already", d.Name, d.Name))
		case from == "" && s.Given(d.Name):
			return nil, exit.With(exit.Usage, d.Refuse(""))
		case from != "" && !again:
			// A configuration file may hold all defaults.
			specs = append(specs, stores.Spec{Name: d.Name, From: from, Optional: !s.Given(d.Name) || from == d.Default})
		}
	}
	specs = append(specs, named...)
	for _, x := range specs {
		if _, err := stores.DriverOf(x.Name); err != nil {
			return nil, s.Wrong("store", err)
		}
	}
	return specs, nil
}

// CheckStores refuses stores that cannot be meant.
func (s *Settings) CheckStores() error {
	_, err := s.Specs()
	return err
}

// choices are the words that a driver takes, and how URLs begin.
func choices(d *stores.Driver, before string) (out []cobra.Completion) {
	for _, c := range d.Choices {
		out = append(out, cobra.CompletionWithDesc(before+c.Word, c.Doc))
	}
	return out
}

// completeNamedStore offers NAME= and then what the driver of the name takes.
func completeNamedStore(_ *cobra.Command, _ []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	name, _, named := strings.Cut(typed, "=")
	if d, err := stores.DriverOf(name); named && err == nil {
		out = choices(d, name+"=")
	}
	for _, d := range stores.Drivers() {
		if !named {
			out = append(out, d.Name+"=", d.Name+".")
		}
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}
