package workloads

import (
	"fmt"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/seed"
)

// crowd is a stream of independent requests for a known number of subjects, each
// request's subject drawn by popularity and its cost from a distribution. Subject
// 0 is the most popular.
type crowd struct {
	filled
	prices
	requests int64
	who      stream
	what     stream
	table    alias
	names    []string
}

var (
	_ Bounded   = (*crowd)(nil)
	_ Prefilled = (*crowd)(nil)
)

// newCrowd also returns the weights of the subjects, and notes on what was chosen.
func newCrowd(params Params) (c *crowd, weights []uint64, notes []string, err error) {
	popular, subjects, err := params.popularity()
	if err != nil {
		return nil, nil, nil, err
	}
	form, err := parseCost(params.Options["cost"])
	if err != nil {
		return nil, nil, nil, err
	}
	c = &crowd{
		requests: params.Requests,
		who:      newStream(params.Seed, seed.Subjects),
		what:     newStream(params.Seed, seed.Costs),
		names:    subjectNames(subjects),
	}
	c.prices, err = form.prices(params.Policy)
	if err != nil {
		return nil, nil, nil, err
	}
	weights = popular.weights(subjects)
	c.filled, err = newFilled(params, weights)
	if err != nil {
		return nil, nil, nil, err
	}
	c.table = newAlias(weights)
	notes = append(notes, fmt.Sprintf("popularity of the subjects: %v; %s", popular, c.describe(params.Policy.Unit)))
	notes = append(notes, c.notes("checks", params.Policy.Unit)...)
	return c, weights, notes, nil
}

func (c *crowd) At(i int64, op *Op) {
	*op = Op{Subject: c.table.draw(c.who.at(uint64(i))), Units: c.draw(c.what.at(uint64(i)))}
}

func (c *crowd) Len() int64                 { return c.requests }
func (c *crowd) Subjects() int              { return len(c.names) }
func (c *crowd) Name(subject uint32) string { return c.names[subject] }

// subjectNames are the names of generated subjects.
func subjectNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "subject-" + strconv.Itoa(i)
	}
	return names
}
