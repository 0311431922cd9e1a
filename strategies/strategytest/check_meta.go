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
	forms = []strategies.Form{
		strategies.Documented, strategies.Hardened, strategies.Rejected, strategies.Reference,
		strategies.Future, strategies.Frontier, strategies.Baseline, strategies.Library,
	}
	needs      = []strategies.Need{strategies.NeedRedis, strategies.NeedPostgres, strategies.NeedSource}
	countings  = []quota.Counting{quota.CountsAdmitted, quota.CountsAttempts, quota.CountsNothing}
	resets     = []strategies.Reset{strategies.ResetsWindow, strategies.ResetsNever, strategies.ResetsMissing}
	controls   = []strategies.Control{"", strategies.ControlExact, strategies.ControlOpen, strategies.ControlRacy}
	properties = []quota.Property{quota.PropertyLeak, quota.PropertyFalseReject}
)

// checkMeta looks at what the Meta says about the strategy: it is all that
// reports and the command line know.
func checkMeta(tb testing.TB, m *strategies.Meta, stores Stores) {
	if m.Name != strings.ToLower(m.Name) {
		tb.Errorf("name %q is not in lower case", m.Name)
	}
	if strings.HasSuffix(m.Doc, ".") || strings.Contains(m.Doc, "\n") || m.Doc != strings.TrimSpace(m.Doc) {
		tb.Errorf("doc %q is not one line without a full stop", m.Doc)
	}
	among(tb, "form", forms, m.Form)
	among(tb, "counting", countings, m.Counts)
	among(tb, "reset", resets, m.Reset)
	among(tb, "control", controls, m.Control)
	for _, n := range m.Needs {
		if n == "" || strings.ContainsAny(string(n), " :=,") {
			tb.Errorf("need %q is not the name of a store", n)
		}
	}
	if m.Source == "" && (m.Form == strategies.Documented || m.Form == strategies.Rejected) {
		tb.Errorf("a strategy of form %q names the record that it comes from", m.Form)
	}
	for mode, reason := range m.Excluded {
		among(tb, "excluded mode", strategies.Modes(), mode)
		if reason == "" {
			tb.Errorf("mode %s is excluded without a reason", mode)
		}
	}
	if len(m.Excluded) == len(strategies.Modes()) {
		tb.Error("every mode is excluded")
	}
	unique(tb, "kind", m.Kinds)
	unique(tb, "need", m.Needs)
	if policies := served(m, stores); len(policies) == 0 {
		tb.Errorf("kinds are %v, but no policy of any of them is served", m.Kinds)
	}
	var names []string
	for _, o := range m.Options {
		names = append(names, o.Name)
		if o.Name == "" || o.Doc == "" {
			tb.Errorf("option %q has no name or no doc", o.Name)
		}
		unique(tb, "value of option "+o.Name, o.Values)
	}
	unique(tb, "option", names)
	for _, p := range served(m, stores) {
		for _, c := range slices.Concat(m.Guarantee, m.Record) {
			if c.Applies(p.Window.Kind) {
				checkClause(tb, m, c, p)
			}
		}
	}
	checkGivesBack(tb, m, stores)
}

// checkGivesBack: the Meta and an instance agree on whether there are refunds.
func checkGivesBack(tb testing.TB, m *strategies.Meta, stores Stores) {
	f := open(tb, m, stores, 1) // what can be said without stores has been said
	_, refunds := f.instances[0].(strategies.Refunder)
	if refunds != m.GivesBack {
		tb.Errorf("the Meta says that units can be given back: %v; an instance can refund: %v", m.GivesBack, refunds)
	}
	if _, commits := f.instances[0].(strategies.Committer); commits && !refunds {
		tb.Error("an instance can commit reservations and not refund them")
	}
}

// longFormula is the length from which a formula is too long for a table, in characters.
const longFormula = 60

// endless is more units than any limit.
const endless = 1 << 40

// checkClause evaluates the bound over a small grid: it must be a number of units,
// one that can be exceeded, and one that does not shrink as more is going on.
func checkClause(tb testing.TB, m *strategies.Meta, c quota.Clause, p quota.Policy) {
	among(tb, "property", properties, c.Property)
	unique(tb, "tolerated fault", c.Tolerates)
	if n := utf8.RuneCountInString(c.Formula); n >= longFormula {
		tb.Errorf("%s clause: the formula %q has %d characters; fewer than %d fit into a table", c.Property, c.Formula, n, longFormula)
	}
	// A single caller who asks without end, unit by unit: if even then nothing can
	// break the clause, it is no promise.
	sel, err := m.Select(nil)
	if err != nil {
		tb.Error(err)
		return
	}
	easy := quota.Params{Limit: 10, MaxCost: 1, InFlight: 1, Instances: 1, Offered: endless, Policy: withLimit(p, 10), Options: sel.Options}
	bound := c.Bound(easy)
	if bound == quota.Unbounded && c.Property == quota.PropertyFalseReject {
		return // it says in so many words that it promises nothing
	}
	if bound >= endless-easy.Limit {
		tb.Errorf("%s clause: a bound of %d units where %d are asked for promises nothing: leave the clause out", c.Property, bound, easy.Offered)
	}
	for _, limit := range []int64{1, 10} {
		for _, cost := range []int64{1, 3} {
			var last int64
			for _, more := range []int64{1, 2, 50} {
				got := c.Bound(quota.Params{
					Limit: limit, MaxCost: cost, InFlight: more, Instances: more, Offered: limit * more,
					Policy: withLimit(p, limit), Options: sel.Options,
				})
				if got < 0 {
					tb.Errorf("%s clause: a bound of %d units", c.Property, got)
				}
				if got < last {
					tb.Errorf("%s clause: the bound sinks from %d to %d as load rises", c.Property, last, got)
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
func checkOptions(tb testing.TB, m *strategies.Meta, stores Stores) {
	if len(m.Options) == 0 {
		tb.Skip("has no options")
	}
	p := anyKind(tb, m, stores)
	for _, o := range m.Options {
		values := o.Values
		if len(values) == 0 {
			values = []string{o.Default}
		}
		for _, v := range values {
			sel, err := m.Select(quota.Options{o.Name: v})
			if err != nil {
				tb.Fatal(err)
			}
			if need, lacks := stores.lacks(sel.Needs); lacks {
				tb.Logf("%s needs %s, which is not here", sel, need)
				continue
			}
			f := openBy(tb, m, stores, 1, quota.Options{o.Name: v}, patientClock)
			b := f.book(withLimit(p, 5))
			b.take(b.subject(0), 1)
		}
	}
}
