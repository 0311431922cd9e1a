// Package audit compares what the stores of a strategy say about subjects, and changes nothing in them.
package audit

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/internal/exit"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Audit says what is compared, and where. It is used once.
type Audit struct {
	Strategy strategies.Selection
	Policy   quota.Policy
	Clock    quota.Clock
	Redis    Reader
	Postgres *pgxpool.Pool // nil for what is in Redis alone
	// Key, with {subject} in it, and Query stand for the strategy's own unless they are empty.
	Key, Query string
	Most       int           // subjects that are looked at
	Pause      time.Duration // from the first reading to the second

	knows knowledge
	words []string         // pairs for a replacer
	facts map[string]int64 // see general.yaml
	r     Report
}

// Report is what was found.
type Report struct {
	Strategy string `json:"strategy"`
	Policy   string `json:"policy"`
	Looked   int    `json:"looked"` // subjects, of about so many:
	About    int    `json:"about"`
	Stores   []Sum  `json:"stores"`  // what each says at the first reading
	Endless  int    `json:"endless"` // keys that never expire, though their window ends
	// Passing are differences that the second reading did not find again. The others are Differences, the largest first, which
	// Histogram counts by sign and size, and Mechanisms by those that fit: if these are several, the stores do not tell them apart.
	Passing     int       `json:"passing"`
	Differences []Subject `json:"differences"`
	Histogram   []Sum     `json:"histogram"`
	Mechanisms  []Sum     `json:"mechanisms"`
	Evidence    []string  `json:"evidence"` // why mechanisms fit or are ruled out
}

// Sum is a number of subjects, and their units. Of differences these are the units that Redis has more than PostgreSQL.
type Sum struct {
	Name     string `json:"name"`
	Subjects int    `json:"subjects"`
	Units    int64  `json:"units"`
	Over     int    `json:"over_limit"` // subjects that have used more than their limit
}

// Subject is what the stores say of one: units that it has used, or null.
type Subject struct {
	Name     string `json:"subject"`
	Redis    *int64 `json:"redis"`
	Postgres *int64 `json:"postgres"`
	Units    int64  `json:"units"`  // that Redis has more, in both readings
	TTL      int64  `json:"ttl_ms"` // of the key, in milliseconds; -1 is for ever, and -2 says that there is none
	// Mechanisms that fit, and the command that mends the count if it is the same for all of them. It was not run.
	Mechanisms []string `json:"mechanisms"`
	Repair     string   `json:"repair,omitempty"`
	limit      int64
}

// knowledge is what a strategy tells of its stores by [strategies.Meta.Audit].
type knowledge struct {
	Key          string
	Fields, Less []any  // of a hash, to add up and to subtract; none if the key has a number
	Query        string // a SELECT of subjects, units and perhaps a column "limit"; it may name @policy
	Missing      string // what the strategy makes of a count that Redis lacks: "read" or "restored"; empty if it begins anew
	// Words stand in braces in all texts. Each has its meaning for a policy, a unit, or by an empty name for all.
	Words      map[string]map[string]string
	Mechanisms []struct{ Name, Needs, Says, Repair string }
}

//go:embed general.yaml report.tmpl read.lua info.lua
var files embed.FS

// Text writes a [Report] for people.
var Text = template.Must(template.New("report.tmpl").Funcs(template.FuncMap{"join": strings.Join}).ParseFS(files, "report.tmpl"))

func file(name string) string {
	b, _ := files.ReadFile(name) // it is part of the program
	return string(b)
}

// Run reads the stores twice, and explains what differs both times.
func (a *Audit) Run(ctx context.Context) (Report, error) {
	a.facts = map[string]int64{}
	a.r = Report{Strategy: a.Strategy.String(), Policy: a.Policy.String(), Stores: []Sum{}, Differences: []Subject{}, Histogram: []Sum{},
		Mechanisms: []Sum{}, Evidence: []string{}}
	if err := a.learn(); err != nil {
		return a.r, err
	}
	all, err := a.find(ctx)
	if err == nil {
		err = a.read(ctx, all)
	}
	if err != nil {
		return a.r, err
	}
	first := a.tally(all)
	if len(first) == 0 {
		return a.r, nil
	}
	second := slices.Clone(first)
	if err = a.Clock.Sleep(ctx, a.Pause); err == nil {
		err = a.read(ctx, second)
	}
	if err == nil {
		err = a.inform(ctx)
	}
	if err == nil {
		a.compare(first, second)
	}
	return a.r, err
}

// learn reads what is known of the strategy.
func (a *Audit) learn() error {
	p, k := &a.Policy, &a.knows
	err := yaml.UnmarshalWithOptions([]byte(cmp.Or(a.Strategy.Audit, "mechanisms:\n")+file("general.yaml")), k, yaml.Strict())
	if err != nil {
		return fmt.Errorf("what %s tells of its stores: %w", a.Strategy.Name, err)
	}
	a.words = []string{"{policy}", p.Name, "{window}", p.Window.Label(p.Window.At(a.Clock.Now()).Index)}
	for word, of := range k.Words {
		a.words = append(a.words, "{"+word+"}", cmp.Or(of[p.Name], of[p.Unit], of[""]))
	}
	for i := range k.Fields {
		k.Fields[i] = a.fill(fmt.Sprint(k.Fields[i]))
	}
	a.Key, a.Query = a.fill(cmp.Or(a.Key, k.Key)), a.fill(cmp.Or(a.Query, k.Query))
	if !strings.Contains(a.Key, "{subject}") || a.Postgres != nil && a.Query == "" {
		return exit.Usagef("%s does not say where its counts are: give --key with {subject} in it, and for PostgreSQL --query", a.Strategy)
	}
	a.facts["missing="+k.Missing] = 1
	for name, value := range a.Strategy.Options {
		a.facts[name+"="+value] = 1
	}
	return nil
}

// fill puts words into a text. They may have words in them.
func (a *Audit) fill(text string) string {
	r := strings.NewReplacer(a.words...)
	return r.Replace(r.Replace(text))
}

func (a *Audit) key(s *Subject) string { return strings.ReplaceAll(a.Key, "{subject}", s.Name) }

// tally adds up what was read first, and returns the subjects on which the stores disagree.
func (a *Audit) tally(all []Subject) (differ []Subject) {
	now := a.Clock.Now()
	end := a.Policy.Window.At(now).End
	for _, s := range all {
		for i, n := range []*int64{s.Redis, s.Postgres} {
			if n == nil {
				continue
			}
			sum := add(&a.r.Stores, []string{"redis", "postgres"}[i], *n)
			if *n > s.limit && a.Strategy.Counts == quota.CountsAdmitted {
				sum.Over++
			}
		}
		switch {
		case s.TTL == -1 && !end.IsZero() && a.Strategy.Reset == strategies.ResetsWindow:
			a.r.Endless++
		case s.TTL > 0 && (end.IsZero() || now.Add(time.Duration(s.TTL)*time.Millisecond).Before(end)):
			a.facts["expiring"]++
		}
		switch {
		case s.Units != 0:
			differ = append(differ, s)
		case s.Redis != nil && units(s.Postgres) > 0:
			a.facts["agreeing"]++
		}
	}
	return differ
}

// compare explains the differences that both readings have.
func (a *Audit) compare(first, second []Subject) {
	for i, s := range second {
		was := &first[i]
		// The smaller of the two, unless their signs differ.
		s.Units = min(max(s.Units, 0), max(was.Units, 0)) + max(min(s.Units, 0), min(was.Units, 0))
		if s.Units == 0 {
			a.r.Passing++
			continue
		}
		a.facts["higher"], a.facts["lower"], a.facts["missing"] = s.Units, -s.Units, 0
		if s.Redis == nil {
			a.facts["missing"] = 1
		}
		a.facts["moved"] = size(units(s.Redis)-units(was.Redis)) + size(units(s.Postgres)-units(was.Postgres))
		a.explain(&s)
		a.r.Differences = append(a.r.Differences, s)
	}
	slices.Sort(a.r.Evidence)
	slices.SortStableFunc(a.r.Differences, func(x, y Subject) int { return cmp.Compare(size(y.Units), size(x.Units)) })
	for _, s := range a.r.Differences {
		sign := s.Units / size(s.Units)
		low := sign
		for s.Units/low >= 10 {
			low *= 10
		}
		add(&a.r.Histogram, fmt.Sprintf("%+d to %+d", low, 10*low-sign), s.Units)
		add(&a.r.Mechanisms, cmp.Or(strings.Join(s.Mechanisms, " or "), "none that is known"), s.Units)
	}
}

func size(n int64) int64 { return max(n, -n) }

func units(n *int64) int64 { return *cmp.Or(n, new(int64)) }

// add adds a subject to the sum with a name.
func add(list *[]Sum, name string, units int64) *Sum {
	s, _ := groups.In(list, Sum{Name: name}, func(s Sum) bool { return s.Name == name })
	s.Subjects, s.Units = s.Subjects+1, s.Units+units
	return s
}

// explain finds the mechanisms that fit, and the command that mends the count.
func (a *Audit) explain(s *Subject) {
	values := strings.NewReplacer("{key}", strconv.Quote(a.key(s)), "{sql}", "'"+strings.ReplaceAll(s.Name, "'", "''")+"'",
		"{redis}", fmt.Sprint(units(s.Redis)), "{postgres}", fmt.Sprint(units(s.Postgres)))
	var repairs []string
	for _, m := range a.knows.Mechanisms {
		fits, figures := a.fits(m.Needs)
		verdict := format.Join(": ", m.Name+" fits: "+m.Says, figures)
		switch {
		case fits:
			s.Mechanisms, repairs = append(s.Mechanisms, m.Name), append(repairs, values.Replace(a.fill(m.Repair)))
		case figures == "":
			continue // it explains other differences
		default:
			verdict = m.Name + " is ruled out: " + figures
		}
		if !slices.Contains(a.r.Evidence, verdict) {
			a.r.Evidence = append(a.r.Evidence, verdict)
		}
	}
	if repairs = slices.Compact(repairs); len(repairs) == 1 {
		s.Repair = repairs[0]
	}
}

// fits says whether there is all that a mechanism needs, and by which figures that shows.
func (a *Audit) fits(needs string) (fits bool, figures string) {
	for need := range strings.FieldsSeq(needs) {
		fits = false
		for fact := range strings.SplitSeq(need, "|") {
			name, not := strings.CutPrefix(fact, "!")
			name, above, _ := strings.Cut(name, ">")
			n, _ := strconv.ParseInt(above, 10, 64)
			there := a.facts[name] > n != not
			fits = fits || there
			if !slices.Contains([]string{"higher", "lower", "moved", "missing"}, name) && (!there || !strings.Contains(name, "=")) {
				figures = format.Join(", ", figures, fmt.Sprintf("%s is %d", name, a.facts[name]))
			}
		}
		if !fits {
			break
		}
	}
	return fits || needs == "", figures
}
