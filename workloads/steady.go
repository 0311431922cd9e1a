package workloads

import (
	"fmt"
	"math"
	"strconv"
)

func init() {
	Register(Meta{
		Name:      "steady",
		Doc:       "requests arrive at a set rate for many subjects, a few of them very popular, and a share of the checks is over quota",
		Loop:      Open,
		Rate:      1_000,
		Subjects:  10_000,
		Zipf:      1,
		OverQuota: 0.05,
		Make:      newSteady,
	})
}

// steady is the stream of the steady workload. Subject 0 is the most popular.
type steady struct {
	limit    int64
	requests int64
	costs    []int64
	who      stream
	what     stream
	table    alias
	names    []string
	full     []bool
}

var (
	_ Stream    = (*steady)(nil)
	_ Bounded   = (*steady)(nil)
	_ Prefilled = (*steady)(nil)
)

func newSteady(p Params) (Stream, Info, error) {
	weights := zipfWeights(p.Subjects, *p.Zipf)
	s := &steady{
		limit:    p.Policy.Limit,
		requests: p.Requests,
		costs:    costsOf(p),
		who:      newStream(p.Seed, forSubjects),
		what:     newStream(p.Seed, forCosts),
		table:    newAlias(weights),
		names:    subjectNames(p.Subjects),
		full:     chooseFull(weights, *p.OverQuota, newStream(p.Seed, forFull)),
	}
	return s, Info{Loop: Open, Notes: s.notes(p, weights)}, nil
}

func (s *steady) At(i int64, op *Op) {
	*op = Op{Subject: s.table.draw(s.who.at(uint64(i))), Kind: Take, Units: s.costs[0]}
	if n := uint64(len(s.costs)); n > 1 {
		op.Units = s.costs[below(s.what.at(uint64(i)), n)]
	}
}

func (s *steady) Len() int64                 { return s.requests }
func (s *steady) Subjects() int              { return len(s.names) }
func (s *steady) Name(subject uint32) string { return s.names[subject] }

func (s *steady) Initial(subject uint32) int64 {
	if s.full[subject] {
		return s.limit
	}
	return 0
}

// notes says who starts full. Where the requests are known it also says which
// share of the checks to expect over quota, because popular subjects use up a
// small limit within the run.
func (s *steady) notes(p Params, weights []uint64) []string {
	var sum, full uint64
	var count int
	for i, w := range weights {
		sum += w
		if s.full[i] {
			full += w
			count++
		}
	}
	share := float64(full) / float64(sum)
	notes := []string{fmt.Sprintf("%d of %d subjects, with %.1f %% of the checks, start with their quota used up", count, p.Subjects, 100*share)}
	if p.Requests == 0 {
		return notes
	}
	mean := 0.0
	for _, c := range s.costs {
		mean += float64(c) / float64(len(s.costs))
	}
	room, over := float64(s.limit)/mean, share
	for i, w := range weights {
		if checks := float64(p.Requests) * float64(w) / float64(sum); !s.full[i] && checks > room {
			over += (checks - room) / float64(p.Requests)
		}
	}
	if over > share+0.005 {
		notes = append(notes, fmt.Sprintf("popular subjects use up their limit of %d %s within the run: expect about %.0f %% of %d checks over quota",
			s.limit, p.Policy.Unit, 100*over, p.Requests))
	}
	return notes
}

// hottest is the share of subjects, the most popular ones, that stay out of the
// full ones as long as the others suffice: one of them alone can be the whole
// share, and would make a run hinge on a single key.
const hottest = 0.01

// chooseFull picks subjects at random until their weights add up to share of
// all, as closely as weights allow.
func chooseFull(weights []uint64, share float64, order stream) []bool {
	full := make([]bool, len(weights))
	var sum, tail uint64
	head := int(math.Ceil(hottest * float64(len(weights))))
	for i, w := range weights {
		sum += w
		if i >= head {
			tail += w
		}
	}
	target := uint64(math.Round(share * float64(sum)))
	var got uint64
	take := func(i int) {
		full[i] = true
		got += weights[i]
	}
	// What the tail cannot give comes from the least popular of the head.
	for i := head - 1; i >= 0 && got+tail < target; i-- {
		if got+weights[i] <= target {
			take(i)
		}
	}
	perm := make([]int, 0, len(weights)-head)
	for i := head; i < len(weights); i++ {
		perm = append(perm, i)
	}
	for i := range perm {
		j := i + int(below(order.at(uint64(i)), uint64(len(perm)-i)))
		perm[i], perm[j] = perm[j], perm[i]
	}
	for _, i := range perm {
		if got+weights[i] <= target {
			take(i)
		}
	}
	return full
}

// subjectNames are the names of generated subjects.
func subjectNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "subject-" + strconv.Itoa(i)
	}
	return names
}
