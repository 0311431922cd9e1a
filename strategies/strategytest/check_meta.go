package strategytest

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var (
	needs      = []strategies.Need{strategies.NeedRedis, strategies.NeedPostgres, strategies.NeedSource}
	countings  = []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts, quota.CountsNothing}
	resets     = []strategies.Reset{strategies.ResetsWindow, strategies.ResetsNever, strategies.ResetsMissing}
	controls   = []strategies.Control{"", strategies.ControlExact, strategies.ControlOpen, strategies.ControlRacy}
	properties = []quota.Property{quota.PropertyLeak, quota.PropertyFalseReject}
)

// checkMeta looks at what the Meta says about the strategy: it is all that
// reports and the command line know.
func checkMeta(tb testing.TB, meta *strategies.Meta, stores Stores) {
	if meta.Name != strings.ToLower(meta.Name) {
		tb.Errorf("name %q is not in lower case", meta.Name)
	}
	if strings.HasSuffix(meta.Doc, ".") || strings.Contains(meta.Doc, "\n") || meta.Doc != strings.TrimSpace(meta.Doc) {
		tb.Errorf("doc %q is not one line without a full stop", meta.Doc)
	}
	if !meta.Form.Known() {
		tb.Errorf("form %q is none that a strategy can have", meta.Form)
	}
	among(tb, "counting", countings, meta.Counts)
	among(tb, "reset", resets, meta.Reset)
	among(tb, "control", controls, meta.Control)
	for _, n := range meta.Needs {
		if n == "" || strings.ContainsAny(string(n), " :=,") {
			tb.Errorf("need %q is not the name of a store", n)
		}
	}
	if meta.Source == "" && (meta.Form == strategies.Documented || meta.Form == strategies.Rejected) {
		tb.Errorf("a strategy of form %q names the record that it comes from", meta.Form)
	}
	for mode, reason := range meta.Excluded {
		among(tb, "excluded mode", strategies.Modes(), mode)
		if reason == "" {
			tb.Errorf("mode %s is excluded without a reason", mode)
		}
	}
	if len(meta.Excluded) == len(strategies.Modes()) {
		tb.Error("every mode is excluded")
	}
	unique(tb, "kind", meta.Kinds)
	unique(tb, "need", meta.Needs)
	if policies := served(meta, stores); len(policies) == 0 {
		tb.Errorf("kinds are %v, but no policy of any of them is served", meta.Kinds)
	}
	checkOptionNames(tb, meta)
	for _, policy := range served(meta, stores) {
		for _, clause := range slices.Concat(meta.Guarantee, meta.Record) {
			if clause.Applies(policy.Window.Kind) {
				checkClause(tb, meta, clause, policy)
			}
		}
	}
	checkGivesBack(tb, meta, stores)
}

// checkOptionNames: each option and value has one name.
func checkOptionNames(tb testing.TB, meta *strategies.Meta) {
	var names []string
	for _, option := range meta.Options {
		names = append(names, option.Name)
		if option.Name == "" || option.Doc == "" {
			tb.Errorf("option %q has no name or no doc", option.Name)
		}
		unique(tb, "value of option "+option.Name, option.Values)
	}
	unique(tb, "option", names)
}

// checkGivesBack: the Meta and an instance agree on whether there are refunds.
func checkGivesBack(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1) // what can be said without stores has been said
	_, refunds := fixture.instances[0].(strategies.Refunder)
	if refunds != meta.GivesBack {
		tb.Errorf("the Meta says that units can be given back: %v; an instance can refund: %v", meta.GivesBack, refunds)
	}
	if _, commits := fixture.instances[0].(strategies.Committer); commits && !refunds {
		tb.Error("an instance can commit reservations and not refund them")
	}
}

// longFormula is the length from which a formula is too long for a table, in characters.
const longFormula = 60

// endless is more units than any limit.
const endless = 1 << 40

// checkClause evaluates the bound over a small grid: it must be a number of units,
// one that can be exceeded, and one that does not shrink as more is going on.
func checkClause(tb testing.TB, meta *strategies.Meta, clause quota.Clause, policy quota.Policy) {
	among(tb, "property", properties, clause.Property)
	unique(tb, "tolerated fault", clause.Tolerates)
	formula := clause.AtMost()
	if n := utf8.RuneCountInString(formula); n >= longFormula {
		tb.Errorf("%s clause: the formula %q has %d characters; fewer than %d fit into a table", clause.Property,
			formula, n, longFormula)
	}
	// A single caller who asks without end, unit by unit: if even then nothing can
	// break the clause, it is no promise.
	sel, err := meta.Select(nil)
	if err != nil {
		tb.Error(err)
		return
	}
	easy := quota.Params{Limit: 10, MaxCost: 1, Deciding: 1, InFlight: 1, Instances: 1, Offered: endless,
		Policy: withLimit(policy, 10), Options: sel.Options}
	bound := clause.Bound(easy)
	if bound == quota.Unbounded && clause.Property == quota.PropertyFalseReject {
		return // it says in so many words that it promises nothing
	}
	if bound >= endless-easy.Limit {
		tb.Errorf("%s clause: a bound of %d units where %d are asked for promises nothing: leave the clause out",
			clause.Property, bound, easy.Offered)
	}
	for _, limit := range []int64{1, 10} {
		for _, cost := range []int64{1, 3} {
			var last int64
			for _, more := range []int64{1, 2, 50} {
				got := clause.Bound(quota.Params{
					Limit: limit, MaxCost: cost, Deciding: more, InFlight: more, Instances: more, Offered: limit * more,
					Policy: withLimit(policy, limit), Options: sel.Options,
				})
				if got < 0 {
					tb.Errorf("%s clause: a bound of %d units", clause.Property, got)
				}
				if got < last {
					tb.Errorf("%s clause: the bound sinks from %d to %d as load rises", clause.Property, last, got)
				}
				last = got
			}
		}
	}
}

func among[T comparable](tb testing.TB, what string, valid []T, v T) {
	tb.Helper()
	if !slices.Contains(valid, v) {
		tb.Errorf("%s %v is none of %v", what, v, valid)
	}
}

func unique[T comparable](tb testing.TB, what string, list []T) {
	tb.Helper()
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			tb.Errorf("%s %v comes twice", what, v)
		}
	}
}

// checkOptions opens the strategy with each value of each option. What a value
// does to decisions is its family's own test.
func checkOptions(tb testing.TB, meta *strategies.Meta, stores Stores) {
	if len(meta.Options) == 0 {
		tb.Skip("has no options")
	}
	policy := anyKind(tb, meta, stores)
	for _, option := range meta.Options {
		values := option.Values
		if len(values) == 0 {
			values = []string{option.Default}
		}
		for _, text := range values {
			sel, err := meta.Select(quota.Options{option.Name: text})
			if err != nil {
				tb.Fatal(err)
			}
			if need, lacks := stores.lacks(sel.Needs); lacks {
				tb.Logf("%s needs %s, which is not here", sel, need)
				continue
			}
			fixture := openBy(tb, meta, stores, 1, quota.Options{option.Name: text}, patientClock)
			book := fixture.book(withLimit(policy, 5))
			book.take(book.subject(0), 1)
		}
	}
}
