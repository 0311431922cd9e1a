package group

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/kit/yamlfile"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
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

// policies sets the policy of a plan, or both of a limiter with two windows, e.g. "10/s and 1000/h".
func (s *Settings) policies(plan *harness.Plan) (err error) {
	windows := []string{s.Policy}
	plan.Policy, err = LookupPolicy(s.Policy)
	if err != nil {
		windows = twoWindows.Split(s.Policy, 2)
	}
	if len(windows) == 2 {
		whole := err
		plan.Policy, err = LookupPolicy(windows[0])
		if err != nil && strings.HasPrefix(windows[0], "@") { // the name of a file may have the separator in it
			err = whole
		}
	}
	if err != nil {
		return s.Wrong("policy", err)
	}
	s.Chose = Reading(windows[0], &plan.Policy)
	if len(windows) == 1 {
		return nil
	}
	if s.Route != "" {
		return s.Wrong("route-policy", errors.New("the policy has two windows already: leave one of the three out"))
	}
	policy, err := LookupPolicy(windows[1])
	if err != nil {
		return s.Wrong("policy", err)
	}
	plan.Second = &policy
	s.Chose = format.Join("; ", s.Chose, Reading(windows[1], &policy))
	return nil
}

// twoWindows stands between the policies of a limiter with two windows.
var twoWindows = regexp.MustCompile(`\s+and\s+|,\s+|\s*[;&]\s*`)

// BothPolicies are those of the flag, e.g. of "10/s and 1000/h". The second one is empty if there is one.
func (s *Settings) BothPolicies() (first, second quota.Policy, err error) {
	var plan harness.Plan
	err = s.policies(&plan)
	if plan.Second != nil {
		second = *plan.Second
	}
	return plan.Policy, second, err
}

// LookupPolicy returns the policy of a registered name, of a text such as
// "5 attempts per rolling 15m", or of a YAML file, as @file.
func LookupPolicy(text string) (quota.Policy, error) {
	path, ok := strings.CutPrefix(text, "@")
	if !ok {
		return quota.LookupPolicy(text)
	}
	data, err := settings.ReadBounded(path)
	if err != nil {
		return quota.Policy{}, err
	}
	return readPolicy(path, data)
}

// Reading says how a policy was read that is not written in full, and by which word it would be another: "" if it is
// written in full.
func Reading(text string, policy *quota.Policy) string {
	dashed := strings.Join(strings.Fields(text), "-")
	if strings.HasPrefix(text, "@") || dashed == policy.Name {
		return ""
	}
	note := "policy " + format.Quoted(text) + " is read as " + format.Quoted(policy.Text())
	if policy.Window.Kind == quota.Fixed {
		note += `; "per rolling" makes it a window that moves`
	}
	return note
}

// PolicyText is the policy for people, e.g. "1 e-mail per rolling 1h".
func PolicyText(policy *quota.Policy) string {
	return format.Count(policy.Limit) + " " + policy.Counted() + " " + policy.Window.When()
}

// readPolicy is strict: an unknown key is an error.
func readPolicy(path string, data []byte) (quota.Policy, error) {
	var file policyFile
	if err := yamlfile.Decode(path, data, &file); err != nil {
		return quota.Policy{}, err
	}
	policy, err := file.policy()
	if err != nil {
		return quota.Policy{}, fmt.Errorf("%s: %w", path, err)
	}
	return policy, nil
}

// policy is what the file describes. Without a name the policy is called by its text, as one that is written on the
// command line.
func (file *policyFile) policy() (quota.Policy, error) {
	policy := quota.Policy{Name: file.Name, Doc: file.Doc, Limit: file.Limit, Unit: file.Unit, Costs: file.Costs}
	if file.Window == "" {
		return policy, fmt.Errorf("window is missing: one of %s", format.List(quota.Kinds(), ", ", quota.Kind.String))
	}
	policy.Window.Refill = file.Refill
	var err error
	err = policy.Window.Kind.UnmarshalText([]byte(file.Window))
	if err != nil {
		return policy, err
	}
	for _, x := range []struct {
		text     string
		duration *time.Duration
	}{{file.Length, &policy.Window.Length}, {file.Hold, &policy.Hold}} {
		if x.text == "" {
			continue
		}
		*x.duration, err = quota.ParseLength(x.text)
		if err != nil {
			return policy, err
		}
	}
	policy.Window.Location, err = quota.ParseZone(file.Location)
	if err != nil {
		return policy, err
	}
	if policy.Name == "" {
		policy.Name = strings.ReplaceAll(policy.Text(), " ", "-")
	}
	return policy, policy.Validate()
}

// fit chooses the policy of a plan for which nobody did. Of strategies that are named, it is the
// one of the likely policies under which most can run. The members of a set keep that of the
// plan, and those that serve none of its kind have it as one of a kind that they serve.
func (s *Settings) fit(plan *harness.Plan) {
	usual := plan.Policy
	s.usual = usual
	most := s.running(plan, usual, plan.Strategies)
	named := func(word string) bool {
		name, _, _ := strings.Cut(word, ":")
		return !strategies.IsSet(word) && !strings.Contains(name, "=") // which a further option has
	}
	if most > 0 && !slices.ContainsFunc(Items(s.Strategies), named) {
		s.fitEach(plan)
		return
	}
	for _, policy := range strategies.PoliciesToTry(usual, plan.Strategies) {
		if n := s.running(plan, policy, plan.Strategies); n > most {
			most = n
			plan.Policy = policy
		}
	}
	s.Policy = plan.Policy.Name
	if s.Policy != usual.Name {
		s.Chose = "no --policy was given: using --policy " + format.Quoted(plan.Policy.Text())
	}
}

// fitEach gives strategies that cannot run under the plan's policy others of the same limit. A
// sweep and a comparison try all under one.
func (s *Settings) fitEach(plan *harness.Plan) {
	if s.measured() && s.Sweeps() || s.Against != "" {
		return
	}
	policies := map[string]quota.Policy{}
	for _, sel := range plan.Strategies {
		one := []strategies.Selection{sel}
		all := strategies.PoliciesToTry(plan.Policy, one)
		i := slices.IndexFunc(all, func(policy quota.Policy) bool {
			return policy.Limit == plan.Policy.Limit && slices.Equal(policy.Costs, plan.Policy.Costs) &&
				s.running(plan, policy, one) > 0
		})
		if i > 0 {
			policies[sel.String()] = all[i]
		}
	}
	if len(policies) > 0 {
		plan.Policies = policies
		s.Policy = ""
	}
}

// running is how many of the strategies can run in the plan under that policy.
func (s *Settings) running(plan *harness.Plan, policy quota.Policy, all []strategies.Selection) (n int) {
	q := *plan
	q.Policy = policy
	for _, sel := range all {
		if q.CheckPolicy() == nil && q.CannotRun(sel, s.mode(), q.CrossesWindows()) == nil {
			n++
		}
	}
	return n
}

func (s *Settings) mode() strategies.Mode {
	if s.command == Sim {
		return strategies.ModeSimulate
	}
	return strategies.ModeMeasure
}

// Instead is a command that tries a strategy which the plan's policy or workload keeps from
// running: this one with others, or "" if those are not the cause. Cannot says why a plan cannot
// run the strategy.
func (s *Settings) Instead(plan *harness.Plan, sel strategies.Selection, cannot func(*harness.Plan) error) string {
	base := plan.Policy
	if !s.Given("policy") {
		base = s.usual
	}
	others := slices.DeleteFunc(workloads.All(), func(meta *workloads.Meta) bool {
		return meta.NeedsTrace || meta == plan.Workload
	})
	policies := strategies.PoliciesToTry(base, []strategies.Selection{sel})
	slices.SortStableFunc(policies, func(a, b quota.Policy) int {
		return otherwise(&a, &base) - otherwise(&b, &base)
	})
	for _, meta := range append([]*workloads.Meta{plan.Workload}, others...) {
		for _, policy := range policies {
			q := *plan
			q.Policy = policy
			q.Workload = meta
			if q.CheckPolicy() == nil && cannot(&q) == nil {
				return s.commandOf(sel, plan, &q)
			}
		}
	}
	return ""
}

// otherwise is 0 for a policy of the same limit and time as another one, and 1 for any else.
func otherwise(policy, other *quota.Policy) int {
	if policy.Limit == other.Limit && policy.Period() == other.Period() {
		return 0
	}
	return 1
}

// Elsewhere is a command that tries a strategy which cannot be simulated, or "" if there is none.
func (s *Settings) Elsewhere(sel strategies.Selection) string {
	if _, not := sel.Excludes(strategies.ModeMeasure); s.command != Sim || not {
		return ""
	}
	line := "quotabench " + string(Run) + " " + format.Quoted(sel.String())
	if sel.BuiltIn() != nil {
		line += " in a program that has it: " + sel.Elsewhere
	}
	return line
}

// unfit is the error of a plan whose policy does not go with its workload.
func (s *Settings) unfit(plan *harness.Plan, err error) error {
	for _, sel := range plan.Strategies {
		cannot := func(q *harness.Plan) error { return q.CannotRun(sel, s.mode(), q.CrossesWindows()) }
		if line := s.Instead(plan, sel, cannot); line != "" {
			return exit.Usagef("%w; this works: %s", err, line)
		}
	}
	return exit.With(exit.Usage, err)
}

// commandOf is the command line that does for one strategy what this one does, with the policy and the workload of
// another plan than its own.
func (s *Settings) commandOf(sel strategies.Selection, own, other *harness.Plan) string {
	words := []string{"quotabench", string(s.command), sel.String()}
	var replaced []string // settings
	if other.Workload != own.Workload {
		words = append(words, "--workload", workloadText(own, other))
		replaced = append(replaced, "workload", traceOption, fieldsOption)
	}
	// Without --policy, one is chosen for the other workload as it was for this one.
	if other.Policy.Name != own.Policy.Name && (other.Workload == own.Workload || s.Given("policy")) {
		policy := other.Policy.Text()
		if listed(other.Policy.Name) {
			policy = other.Policy.Name
		}
		words = append(words, "--policy", policy)
		replaced = append(replaced, "policy")
	}
	for _, flag := range s.Flags(replaced...) {
		words = append(words, redact.All(flag))
	}
	return format.List(words, " ", format.Quoted)
}

// workloadText is the workload of the other plan, with those of its own options that it takes, too.
func workloadText(own, other *harness.Plan) string {
	given := quota.Options{}
	for name, value := range own.Stream.Options {
		if other.Workload.Takes(name) {
			given[name] = value
		}
	}
	return options.Text(other.Workload.Name, other.Workload.Options, given)
}
