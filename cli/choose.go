package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/choose"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// chooseSettings are those of run that apply, and the questions.
type chooseSettings struct {
	*settings
	regions               int
	subjects              int64
	leak, outage, settles string
	p99, budget, skew     time.Duration
	yes, asJSON           bool
}

// chosenFrom are the settings of run that a choice has, beside the stores.
var chosenFrom = []string{"strategy", "policy", "instances", "rate", "seed", "out"}

// questions are the settings that are asked for on a terminal, in their order.
var questions = []string{"policy", "instances", "regions", "rate", "subjects", "leak", "p99", "outage", "uploads"}

// What --uploads takes.
const (
	settlesAuto = "auto"
	settlesYes  = "yes"
	settlesNo   = "no"
)

func newChooseSettings() *chooseSettings {
	s := &chooseSettings{
		settings: newSettings(), regions: 1, subjects: choose.DefaultSubjects, leak: "0", outage: string(choose.OutageAny),
		settles: settlesAuto, budget: choose.DefaultBudget,
	}
	s.strategy, s.instances, s.rate = []string{"all"}, choose.DefaultInstances, choose.DefaultRate
	s.table = slices.DeleteFunc(s.table, func(x setting) bool { return !x.store && !slices.Contains(chosenFrom, x.name) })
	for name, doc := range map[string]string{
		"strategy":  "strategies to choose from, `a,b:option=value`, core, all or a pattern such as pg-*; may be repeated",
		"instances": "application instances, in each region",
		"rate":      "`requests` per second of the whole application",
		"out":       "`directory` for choice.json, choice.txt and the record of each stage (default quotabench-results/<time>)",
	} {
		s.lookup(name).doc = doc
	}
	first := func(x setting) bool { return x.name == "policy" || x.name == "instances" }
	s.table = slices.Concat([]setting{*s.lookup("policy"), *s.lookup("instances")}, s.ownSettings(), slices.DeleteFunc(slices.Clone(s.table), first))
	return s
}

// ownSettings are the questions that no other command has.
func (s *chooseSettings) ownSettings() []setting {
	var words []string
	for _, o := range choose.Outages() {
		words = append(words, o.Name)
	}
	return []setting{
		{name: "regions", value: whole(&s.regions, 1, choose.MaxRegions),
			doc: "regions, 80 to 150 ms apart in the simulation of them"},
		{name: "skew", value: span(&s.skew, harness.MaxClockSkew), computed: true, doc: "how far the clocks of instances are apart in the simulation, e.g. 2s (default: they agree)"},
		{name: "subjects", value: count(&s.subjects, 1, choose.MaxSubjects), doc: "users, keys or addresses that the requests are for"},
		{name: "leak", value: &text{p: &s.leak, what: "units such as 5, or a share of the limit such as 1%"}, complete: completeWords("0", "1%"),
			doc: "`units`, or a share of the limit such as 1%, that one subject may be given over its limit in one window"},
		{name: "p99", value: span(&s.p99, measure.MaxDuration), computed: true,
			doc: "longest 99th percentile of a decision, e.g. 5ms (default: none is asked for)"},
		{name: "outage", value: &text{p: &s.outage, choices: words}, complete: completeWords(words...),
			doc: "while Redis cannot be reached: open (admit), closed (hold the limit), survive (decide and hold it), or any"},
		{name: "uploads", value: &text{p: &s.settles, choices: []string{settlesAuto, settlesYes, settlesNo}}, complete: completeWords(settlesAuto, settlesYes, settlesNo),
			doc: "whether units are committed, refunded or abandoned, as by uploads; auto: where the policy has no window"},
		{name: "budget", value: span(&s.budget, measure.MaxDuration), doc: "time that the choice may take; what it does not come to is said to be not tested"},
		{name: "yes", value: &boolean{&s.yes}, doc: "ask nothing, and take the default of what is not given; so it is where no terminal answers"},
		{name: "verbose", value: &boolean{&s.verbose}, doc: "print the command behind every figure, which choice.txt has"},
		{name: "json", value: &boolean{&s.asJSON}, doc: "write JSON instead of text"},
	}
}

func chooseCommand() *cobra.Command {
	s := newChooseSettings()
	cmd := &cobra.Command{
		Use:   "choose",
		Short: "Choose a strategy: up to three that fit, and what rules out each of the others",
		Long: "Asks for the policy, how many instances and regions there are, the rate, and what is\n" +
			"tolerated, and takes every strategy through stages, the cheap ones first: what it\n" +
			"declares, a search for a schedule that leaks, a simulation over regions and across the\n" +
			"end of a window, and runs on real stores under contention, with an outage and at the\n" +
			"rate. Prints up to three candidates with the evidence, and for each other strategy the\n" +
			"shortest schedule or the figure that rules it out.",
		Example: "  quotabench choose\n" +
			"  quotabench choose --yes --policy user-links --regions 3\n" +
			"  quotabench choose --yes --policy \"5 attempts per rolling 15m\" --rate 500\n" +
			"  quotabench choose --yes --policy agent-api --rate 50000 --p99 5ms --budget 3m\n" +
			"  quotabench choose --yes --policy agent-api --outage survive --redis process",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer outlivePipes()()
			if err := s.ask(cmd); err != nil {
				return err
			}
			cfg, err := before(cmd.Context(), s.configure)
			if err != nil {
				return err
			}
			return s.choose(cmd, cfg)
		},
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	return cmd
}

// configure turns the settings into a question.
func (s *chooseSettings) configure() (choose.Config, error) {
	c := choose.Config{
		Instances: s.instances, Regions: s.regions, Rate: s.rate, Subjects: s.subjects, P99: s.p99, Skew: s.skew,
		Outage: choose.Outage(s.outage), Budget: s.budget, Seed: s.seed,
	}
	chosen, err := strategies.Parse(strings.Join(s.strategy, ","))
	if err != nil {
		return c, s.wrong("strategy", err)
	}
	if c.Policy, err = lookupPolicy(s.policy); err != nil {
		return c, s.wrong("policy", err)
	}
	c.Settles = s.settles == settlesYes || s.settles == settlesAuto && c.Policy.Window.Kind == quota.Standing
	if c.TolerateLeak, err = leakOf(s.leak, c.Policy.Limit); err != nil {
		return c, s.wrong("leak", err)
	}
	for _, x := range chosen {
		if why, not := x.Excludes(strategies.ModeExplore); not && x.Client != "" && x.Client != strategies.PlainClient {
			return c, s.wrong("strategy", fmt.Errorf("%s: %s", x, why))
		}
		if s.given("strategy") || x.Form != strategies.Baseline {
			c.Strategies = append(c.Strategies, x)
		}
	}
	if s.rate == 0 {
		return c, s.wrong("rate", errors.New("give the requests per second, more than 0"))
	}
	if err := s.checkStores(); err != nil {
		return c, err
	}
	if err := c.Complete(); err != nil {
		return c, fail(ExitUsage, err)
	}
	return c, nil
}

// leakOf reads units, or a share of the limit in percent.
func leakOf(text string, limit int64) (int64, error) {
	bad := fmt.Errorf("give units such as 5, or a share of the limit such as 1%%, not %q", text)
	if share, ok := strings.CutSuffix(strings.TrimSpace(text), "%"); ok {
		pct, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(pct >= 0 && pct <= 100) {
			return 0, bad
		}
		return int64(math.Floor(pct / 100 * float64(limit))), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > quota.MaxLimit {
		return 0, bad
	}
	return n, nil
}
