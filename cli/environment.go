package cli

import (
	"os"
	"strings"

	"github.com/quotabench/quotabench/stores"
)

// storeVariable is the environment variable that stands for the flag of a driver.
func storeVariable(driver string) string { return "QUOTABENCH_" + strings.ToUpper(driver) }

// fromEnvironment takes stores from the environment that neither a flag nor a
// configuration file names. Those are for commands that use real stores.
func (s *settings) fromEnvironment() error {
	if s.virtual {
		return nil
	}
	for _, d := range stores.Drivers() {
		x := s.lookup(d.Name)
		name := storeVariable(d.Name)
		v := os.Getenv(name)
		if x == nil || v == "" || s.given(d.Name) {
			continue
		}
		if err := x.value.Set(v); err != nil {
			return usagef("%s: %w", name, err)
		}
		s.places[d.Name] = name
	}
	return nil
}

// environment says which variables name stores.
func environment() checkup {
	c := checkup{Name: "environment", State: stateOK}
	var all, set []string
	for _, d := range stores.Drivers() {
		name := storeVariable(d.Name)
		all = append(all, name)
		if v := os.Getenv(name); v != "" {
			set = append(set, name+"="+redactURLs(v))
		}
	}
	if c.Detail = "names no store"; len(set) > 0 {
		c.Detail = strings.Join(set, ", ")
	}
	c.Advice = strings.Join(all, ", ") + " stand for the flags of these stores; a flag wins, then a configuration file"
	return c
}
