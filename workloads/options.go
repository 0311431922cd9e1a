package workloads

import (
	"fmt"

	"github.com/quotabench/quotabench/quota"
)

// The options that several of the built-in workloads declare. Flags, keys of
// configuration files and help texts are made from them.

// subjectOptions are those of workloads that draw subjects by popularity.
func subjectOptions(subjects int, popularity string) []quota.Option {
	return []quota.Option{
		{Name: "subjects", Type: "int", Min: "1", Max: fmt.Sprint(maxSubjects), Default: fmt.Sprint(subjects),
			Doc: "number of `subjects`"},
		{Name: "popularity", Default: popularity, Check: readable(parsePopularity),
			Doc: "popularity of subjects: " + popularityForms, Offer: []string{"single", "uniform", "zipf", "hot:"}},
	}
}

func costOption(form string) quota.Option {
	return quota.Option{Name: "cost", Default: form, Check: readable(parseCost),
		Doc: "`units` per request: " + costForms, Offer: []string{"policy", "constant:", "uniform:", "lognormal:", "recorded"}}
}

func fillOption() quota.Option {
	return shareOption("fill", 0, "`share` of its limit, 0 to 1, that every subject has used at the start")
}

func overQuotaOption(share float64) quota.Option {
	return shareOption("over-quota", share, "`share` of checks, 0 to 1, on subjects that start with their quota used up")
}

func shareOption(name string, share float64, doc string) quota.Option {
	return quota.Option{Name: name, Type: "float", Min: "0", Max: "1", Default: fmt.Sprint(share), Doc: doc}
}

// crowdOptions are those of workloads that are made by newCrowd.
func crowdOptions(subjects int, popularity string, overQuota float64) []quota.Option {
	return append(subjectOptions(subjects, popularity), costOption("policy"), fillOption(), overQuotaOption(overQuota))
}

// readable checks a form that parse reads.
func readable[T any](parse func(form string) (T, error)) func(form string) error {
	return func(form string) error {
		_, err := parse(form)
		return err
	}
}

// popularity of the subjects, and how many there are.
func (p Params) popularity() (who popularity, subjects int, err error) {
	if who, err = parsePopularity(p.Options["popularity"]); err != nil {
		return who, 0, err
	}
	subjects = int(p.Options.Int("subjects"))
	if who.name == "single" && !p.Given("subjects") {
		subjects = 1
	}
	return who, subjects, who.fits(subjects)
}
