package group

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/settings"
	"github.com/quotabench/quotabench/quota"
)

// policyFile is a policy as a YAML file describes it.
type policyFile struct {
	Name     string  `yaml:"name"`
	Doc      string  `yaml:"doc"`
	Limit    int64   `yaml:"limit"`
	Unit     string  `yaml:"unit"`
	Window   string  `yaml:"window"`
	Length   string  `yaml:"length"`
	Refill   int64   `yaml:"refill"`
	Location string  `yaml:"location"`
	Costs    []int64 `yaml:"costs"`
	Hold     string  `yaml:"hold"`
}

// LookupPolicy returns the policy of a registered name, of a text such as
// "5 attempts per rolling 15m", or of a YAML file, as @file.
func LookupPolicy(text string) (quota.Policy, error) {
	path, ok := strings.CutPrefix(text, "@")
	if !ok {
		return quota.LookupPolicy(text)
	}
	b, err := settings.ReadBounded(path)
	if err != nil {
		return quota.Policy{}, err
	}
	p, err := readPolicy(b)
	if err != nil {
		return quota.Policy{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// PolicyText is the policy for people, e.g. "1 e-mail per rolling 1h".
func PolicyText(p *quota.Policy) string {
	_, rest, _ := strings.Cut(p.String(), " ")
	return format.Count(p.Limit) + " " + rest
}

// readPolicy is strict: an unknown key is an error. Without a name the policy is
// called by its text, as one that is written on the command line.
func readPolicy(b []byte) (quota.Policy, error) {
	if line := settings.Nested(b); line > 0 {
		return quota.Policy{}, fmt.Errorf("line %d: it is nested deeper than %d levels", line, settings.MaxDepth)
	}
	var f policyFile
	if err := yaml.UnmarshalWithOptions(b, &f, yaml.Strict()); err != nil {
		if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil && e.GetToken().Position != nil {
			return quota.Policy{}, fmt.Errorf("line %d: %s", e.GetToken().Position.Line, format.OneLine(e.GetMessage()))
		}
		return quota.Policy{}, fmt.Errorf("not a policy: %s", format.OneLine(err.Error()))
	}
	p := quota.Policy{Name: f.Name, Doc: f.Doc, Limit: f.Limit, Unit: f.Unit, Costs: f.Costs}
	if f.Window == "" {
		return p, fmt.Errorf("window is missing: one of %s", format.List(quota.Kinds(), ", ", quota.Kind.String))
	}
	p.Window.Refill = f.Refill
	var err error
	if err = p.Window.Kind.UnmarshalText([]byte(f.Window)); err != nil {
		return p, err
	}
	for _, x := range []struct {
		text string
		to   *time.Duration
	}{{f.Length, &p.Window.Length}, {f.Hold, &p.Hold}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = quota.ParseLength(x.text); err != nil {
			return p, err
		}
	}
	if p.Window.Location, err = quota.ParseZone(f.Location); err != nil {
		return p, err
	}
	if p.Name == "" {
		p.Name = strings.ReplaceAll(p.Text(), " ", "-")
	}
	return p, p.Validate()
}
