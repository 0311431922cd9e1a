package workloads

import (
	"fmt"
	"strconv"
)

func init() {
	Register(Meta{
		Name:    "hot-key",
		Doc:     "all workers ask one subject for twice its limit, then go on to a fresh one",
		Loop:    Closed,
		Crosses: true,
		Make:    newHotKey,
	})
}

// crossings is the hot-key stream. It is cut into blocks, each with every cost
// of the policy once in random order: so costs are drawn evenly, and a crossing
// has the same operations' worth of units every time.
type crossings struct {
	costs    []int64
	order    stream
	requests int64
	perCross int64
}

var (
	_ Stream  = (*crossings)(nil)
	_ Crosser = (*crossings)(nil)
)

// maxCosts bounds a block, whose order is made on the stack.
const maxCosts = 64

func newHotKey(p Params) (Stream, Info, error) {
	costs := costsOf(p)
	if len(costs) > maxCosts {
		return nil, Info{}, fmt.Errorf("policy %s has %d costs, more than %d", p.Policy.Name, len(costs), maxCosts)
	}
	block := int64(0)
	for _, c := range costs {
		block += c
	}
	twice := 2 * p.Policy.Limit
	blocks := (twice + block - 1) / block
	s := &crossings{
		costs:    costs,
		order:    newStream(p.Seed, forCosts),
		requests: p.Requests,
		perCross: blocks * int64(len(costs)),
	}
	notes := []string{fmt.Sprintf("each crossing asks a fresh subject for %d %s in %d requests", blocks*block, p.Policy.Unit, s.perCross)}
	return s, Info{Loop: Closed, Notes: notes}, nil
}

func (s *crossings) At(i int64, op *Op) {
	*op = Op{Subject: uint32(i / s.perCross), Kind: Take, Units: s.costs[0]}
	if n := int64(len(s.costs)); n > 1 {
		op.Units = s.costs[s.shuffled(i/n, int(i%n))]
	}
}

// shuffled is the element at position pos of the block's own permutation of the
// costs.
func (s *crossings) shuffled(block int64, pos int) int {
	var perm [maxCosts]uint8
	n := len(s.costs)
	for i := range n {
		perm[i] = uint8(i)
	}
	for i := 0; i <= pos; i++ { // later positions do not matter
		x := s.order.at(uint64(block)*maxCosts + uint64(i))
		j := i + int(below(x, uint64(n-i)))
		perm[i], perm[j] = perm[j], perm[i]
	}
	return int(perm[pos])
}

func (s *crossings) Len() int64            { return s.requests }
func (s *crossings) OpsPerCrossing() int64 { return s.perCross }
func (s *crossings) Name(subject uint32) string {
	return "hot-" + strconv.FormatUint(uint64(subject), 10)
}

// costsOf are the units that a request of the policy asks for, each as likely as
// the others.
func costsOf(p Params) []int64 {
	if len(p.Policy.Costs) == 0 {
		return []int64{1}
	}
	return p.Policy.Costs
}
