package memredis

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// scored is one member of a sorted set.
type scored struct {
	score  float64
	member string
}

// before is the order of a sorted set: by score, and by member among equal scores.
func (s scored) before(o scored) bool {
	return s.score < o.score || s.score == o.score && s.member < o.member
}

// zset is a sorted set: its members in order, and the score of each.
type zset struct {
	order  []scored
	scores map[string]float64
}

// place is the index of the first member that is not before s.
func (z *zset) place(s scored) int {
	return sort.Search(len(z.order), func(i int) bool { return !z.order[i].before(s) })
}

// set gives a member a score, and adds it if it is missing.
func (z *zset) set(member string, score float64) {
	z.remove(member)
	score += 0 // a stored minus zero reads as zero
	z.scores[member] = score
	s := scored{score, member}
	z.order = slices.Insert(z.order, z.place(s), s)
}

// remove reports whether the member was there.
func (z *zset) remove(member string) bool {
	score, ok := z.scores[member]
	if !ok {
		return false
	}
	delete(z.scores, member)
	i := z.place(scored{score, member})
	z.order = slices.Delete(z.order, i, i+1)
	return true
}

// cut removes the members from index lo up to hi.
func (z *zset) cut(lo, hi int) {
	for _, s := range z.order[lo:hi] {
		delete(z.scores, s.member)
	}
	z.order = slices.Delete(z.order, lo, hi)
}

// bound is one end of a range of scores.
type bound struct {
	score     float64
	exclusive bool
}

// between are the indexes of the members with scores between two bounds.
func (z *zset) between(low, high bound) (lo, hi int) {
	lo = sort.Search(len(z.order), func(i int) bool {
		s := z.order[i].score
		return s > low.score || s == low.score && !low.exclusive
	})
	hi = sort.Search(len(z.order), func(i int) bool {
		s := z.order[i].score
		return s > high.score || s == high.score && high.exclusive
	})
	return lo, max(lo, hi)
}

// ranks are the indexes that a range of ranks stands for; negative ranks count
// from the end.
func (z *zset) ranks(start, stop int64) (lo, hi int) {
	size := int64(len(z.order))
	if start < 0 {
		start = max(0, size+start)
	}
	if stop < 0 {
		stop = size + stop
	}
	if start > stop || start >= size {
		return 0, 0
	}
	return int(start), int(min(stop, size-1)) + 1
}

// parseScore is Redis' idea of a floating-point number: what strtod takes as a
// whole, but no leading blank and no NaN.
func parseScore(s string) (float64, bool) {
	if s == "" || strings.ContainsRune(s, '_') {
		return 0, false
	}
	digits := strings.ToLower(strings.TrimLeft(s, "+-"))
	if strings.HasPrefix(digits, "0x") && !strings.ContainsRune(digits, 'p') {
		s += "p0" // which strtod can do without
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsNaN(f)
}

// parseBound reads one end of a range of scores. As in Redis, an empty one is 0,
// and blanks may precede the number.
func parseBound(s string) (b bound, ok bool) {
	s, b.exclusive = strings.CutPrefix(s, "(")
	if s == "" {
		return b, true
	}
	b.score, ok = parseScore(strings.TrimLeft(s, " \t\n\v\f\r"))
	return b, ok
}

// scoreText is a score as Redis 7.0 writes it.
func scoreText(f float64) string { return cFormat(f) }
