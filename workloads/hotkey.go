package workloads

import (
	"fmt"
	"math/bits"
	"sort"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/quota"
)

func init() {
	Register(Meta{
		Name:    "hot-key",
		Doc:     "all workers ask one subject for twice its limit, then go on to a fresh one",
		Loop:    Closed,
		Crosses: true,
		Options: []quota.Option{costOption("policy"), fillOption()},
		Make:    newHotKey,
	})
}

// crossings is the hot-key stream. It is cut into blocks that ask for at least so
// many units whatever the seed, and a crossing is a fixed number of blocks: so
// each has the same length, and is sure to ask for twice the limit.
//
// A block of listed costs has every one of them once. A block of n costs of a
// distribution has one from each of n equally likely ranges of it. Both are in
// random order, so that every operation by itself is drawn as the form says.
type crossings struct {
	filled
	prices
	block    int64 // operations
	perCross int64
	requests int64
	order    stream
	what     stream
}

var (
	_ Crosser   = (*crossings)(nil)
	_ Prefilled = (*crossings)(nil)
)

const (
	// maxCosts bounds a block of listed costs, whose order is made on the stack.
	maxCosts = 64
	// maxRanges bounds a block of a distribution. The more ranges, the closer its
	// least sum is to the mean.
	maxRanges = 1024
)

func newHotKey(params Params) (Stream, Info, error) {
	form, err := parseCost(params.Options["cost"])
	if err != nil {
		return nil, Info{}, err
	}
	s := &crossings{
		requests: params.Requests,
		order:    newStream(params.Seed, seed.Costs),
	}
	s.prices, err = form.prices(params.Policy)
	if err != nil {
		return nil, Info{}, err
	}
	s.filled, err = newFilled(params, nil)
	if err != nil {
		return nil, Info{}, err
	}
	twice := 2 * params.Policy.Limit
	var least int64 // units that a block asks for
	if s.list != nil {
		if len(s.list) > maxCosts {
			return nil, Info{}, fmt.Errorf("policy %s has %d costs, more than %d", params.Policy.Name, len(s.list), maxCosts)
		}
		s.block = int64(len(s.list))
		for _, c := range s.list {
			least += c
		}
	} else {
		s.order, s.what = newStream(params.Seed, seed.Order), newStream(params.Seed, seed.Costs)
		s.block = int64(sort.Search(maxRanges-1, func(n int) bool { return s.leastOf(n+1) >= twice })) + 1
		least = s.leastOf(int(s.block))
	}
	blocks := (twice + least - 1) / least
	s.perCross = blocks * s.block
	asked := ""
	switch total := blocks * least; {
	case s.list == nil:
		asked = " for at least " + format.Units(total, params.Policy.Unit)
	case total != s.perCross:
		asked = " for " + format.Units(total, params.Policy.Unit)
	}
	notes := []string{
		fmt.Sprintf("each trial sends %d requests%s to a fresh key (limit %d)", s.perCross, asked, params.Policy.Limit),
		s.describe(params.Policy.Unit),
	}
	return s, Info{Loop: Closed, Notes: append(notes, s.notes("checks", params.Policy.Unit)...)}, nil
}

// leastOf is the least that a block of n ranges can ask for.
func (s *crossings) leastOf(n int) int64 {
	var sum int64
	for i := range n {
		x, _ := bits.Div64(uint64(i), 0, uint64(n))
		sum += s.draw(x)
	}
	return sum
}

func (s *crossings) At(i int64, op *Op) {
	*op = Op{Subject: uint32(i / s.perCross)}
	block := i / s.block
	pos := i % s.block
	switch {
	case s.list == nil:
		r := shuffledRange(s.order, uint64(block), uint64(pos), uint64(s.block))
		x, _ := bits.Div64(r, s.what.at(uint64(i)), uint64(s.block))
		op.Units = s.draw(x)
	case len(s.list) == 1:
		op.Units = s.list[0]
	default:
		op.Units = s.list[s.shuffled(block, int(pos))]
	}
}

// shuffled is the element at position pos of the block's own permutation of the
// costs.
func (s *crossings) shuffled(block int64, pos int) int {
	var perm [maxCosts]uint8
	n := len(s.list)
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

// shuffledRange is the element at position pos of a block's own permutation of
// 0 to n-1, in time that does not depend on n: the swap-or-not shuffle of Hoang,
// Morris and Rogaway. A round pairs the elements at random and swaps each pair or
// not, by a bit that both of it compute alike.
func shuffledRange(order stream, block, pos, n uint64) uint64 {
	const rounds = 16
	for r := range uint64(rounds) {
		key := order.at(block*rounds + r)
		partner := below(key, n) + n - pos
		if partner >= n {
			partner -= n
		}
		if seed.Mix(key+max(pos, partner)*seed.Golden)>>63 == 1 {
			pos = partner
		}
	}
	return pos
}
