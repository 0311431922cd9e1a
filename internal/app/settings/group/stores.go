package group

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/all" // what the flags can name
)

// storeChoice is which stores are used.
type storeChoice struct {
	From  map[string]*string // by driver
	kinds []string           // those that the command can use
	Named []string           // of --store
}

// Stores are flags for kinds of stores, which are all unless some are named, and one for the kinds without a flag and
// for further stores.
func (s *Settings) Stores(kinds ...string) []settings.Setting {
	var table []settings.Setting
	var passwords []string
	for _, driver := range stores.Drivers() {
		from := driver.Default
		if s.command == Sim || s.command == Own {
			from = "" // a store in this process, or none
		}
		s.From[driver.Name] = &from
		if kinds != nil && !slices.Contains(kinds, driver.Name) {
			continue
		}
		if s.command == Own && driver.URLs == "" { // users have none of their own
			continue
		}
		s.kinds = append(s.kinds, driver.Name)
		if driver.PasswordEnv != "" {
			passwords = append(passwords, driver.PasswordEnv)
		}
		if !driver.HasFlag() {
			continue
		}
		table = append(table, settings.Setting{Name: driver.Name, Title: settings.Stores, Value: settings.Text(&from),
			Secret:       true,
			Common:       true,
			PasswordFrom: driver.PasswordEnv,
			Complete: cobra.FixedCompletions(by(s, choices(driver, ""), map[Command][]cobra.Completion{Own: nil}),
				settings.NoFiles|cobra.ShellCompDirectiveNoSpace), Computed: from == "",
			Doc: by(s, driver.Main()+"; quotabench list stores has their options; or as "+
				StoreVariable(driver.Name)+" says", texts{
				Own: "`URL` of a " + driver.Title + " of yours (" + driver.URLs + "), or as " +
					StoreVariable(driver.Name) + " says",
				Sim: "process, container or a URL (default: none); a real Redis that carries the commands out, at virtual " +
					"moments, in place of a table in this process",
			})})
	}
	if kinds == nil {
		table = append(table, settings.Setting{Name: "store", Title: settings.Stores, Value: settings.List(&s.Named),
			Secret:       true,
			PasswordFrom: strings.Join(passwords, " or "), Complete: completeNamedStore})
	}
	return table
}

// StoreVariable is the environment variable that names the main store of a driver.
func StoreVariable(driver string) string { return "QUOTABENCH_" + strings.ToUpper(driver) }

// storeVariable is the environment variable with what --store may name, each on a line of its own.
const storeVariable = "QUOTABENCH_STORE"

// Environment has the stores that flags name as variables for another program, and says which flags these are. Every
// user of the machine can read the command line of a process, and a URL may have a password. Earlier versions know the
// variables of main stores alone, so that others are flags unless they have a password. Simulations read none of them.
func (s *Settings) Environment() (flags, variables []string) {
	if s.command == Sim {
		return nil, nil
	}
	for _, driver := range stores.Drivers() {
		if slices.Contains(s.kinds, driver.Name) && driver.HasFlag() && s.Rank(driver.Name) == settings.ByFlag {
			flags = append(flags, driver.Name)
			variables = append(variables, StoreVariable(driver.Name)+"="+*s.From[driver.Name])
		}
	}
	if further := strings.Join(s.Named, "\n"); s.Rank("store") == settings.ByFlag && redact.URLs(further) != further {
		flags = append(flags, "store")
		variables = append(variables, storeVariable+"="+further)
	}
	return flags, variables
}

// FromEnvironment takes stores from the environment that neither a flag nor a configuration
// file names. Those are for commands that use real stores.
func (s *Settings) FromEnvironment() error {
	if s.Lookup("store") != nil {
		for line := range strings.Lines(os.Getenv(storeVariable)) {
			text := strings.TrimSpace(line)
			name, _, _ := strings.Cut(text, "=")
			if text == "" || s.names(name) || s.Given(name) {
				continue
			}
			if _, err := stores.ParseSpecs([]string{text}); err != nil {
				return exit.Usagef("%s: %w", storeVariable, err)
			}
			s.Named = append(s.Named, text)
		}
	}
	for _, driver := range stores.Drivers() {
		name := StoreVariable(driver.Name)
		v := os.Getenv(name)
		if s.command == Sim || !slices.Contains(s.kinds, driver.Name) || v == "" || s.Given(driver.Name) ||
			s.names(driver.Name) {
			continue
		}
		if s.command == Own && !strings.Contains(v, "://") { // words such as process name no server of others
			continue
		}
		if !driver.HasFlag() {
			s.Named = append(s.Named, driver.Name+"="+v)
			continue
		}
		if err := s.SetFrom(name, driver.Name, v); err != nil {
			return err
		}
	}
	return nil
}

// names reports whether --store names a store.
func (s *Settings) names(store string) bool {
	return slices.ContainsFunc(s.Named, func(text string) bool { return strings.HasPrefix(text, store+"=") })
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
	for _, driver := range stores.Drivers() {
		again := slices.ContainsFunc(named, func(spec stores.Spec) bool { return spec.Name == driver.Name })
		from := *s.From[driver.Name]
		switch {
		case again && s.Given(driver.Name):
			return nil, s.Wrong("store", fmt.Errorf("%s is given by --%s already", driver.Name, driver.Name))
		case from == "" && s.Given(driver.Name):
			return nil, exit.With(exit.Usage, driver.Refuse(""))
		case from != "" && !again:
			// A configuration file may hold all defaults.
			specs = append(specs, stores.Spec{Name: driver.Name, From: from, Optional: !s.Given(driver.Name) ||
				from == driver.Default})
		}
	}
	specs = append(specs, named...)
	for _, spec := range specs {
		if _, err := stores.DriverOf(spec.Name); err != nil {
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
func choices(driver *stores.Driver, before string) (out []cobra.Completion) {
	for _, choice := range driver.Choices {
		out = append(out, cobra.CompletionWithDesc(before+choice.Word, choice.Doc))
	}
	return out
}

// completeNamedStore offers NAME= and then what the driver of the name takes.
func completeNamedStore(_ *cobra.Command, _ []string,
	typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	name, _, named := strings.Cut(typed, "=")
	if driver, err := stores.DriverOf(name); named && err == nil {
		out = choices(driver, name+"=")
	}
	for _, driver := range stores.Drivers() {
		if !named {
			out = append(out, driver.Name+"=", driver.Name+".")
		}
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}
