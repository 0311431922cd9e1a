package fakeredis

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

var (
	notFloat      = fault("ERR value is not a valid float")
	badBound      = fault("ERR min or max is not a float")
	scoreIsNaN    = fault("ERR resulting score is not a number (NaN)")
	nxWithXX      = fault("ERR XX and NX options at the same time are not compatible")
	nxWithGTLT    = fault("ERR GT, LT, and/or NX options at the same time are not compatible")
	incrOfSeveral = fault("ERR INCR option supports a single increment-element pair")
	limitOfRanks  = fault("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
)

func zadd(table *Table, args []string) Reply {
	set, pairs := options(args[2:], "NX", "XX", "GT", "LT", "CH", "INCR")
	return table.zadd(args[1], pairs, set)
}

func zincrby(table *Table, args []string) Reply { return table.zadd(args[1], args[2:], increment) }

// increment are the options of ZINCRBY.
var increment = map[string]bool{"INCR": true}

func (t *Table) zadd(key string, pairs []string, set map[string]bool) Reply {
	if bad := zaddMisuse(pairs, set); bad != nil {
		return *bad
	}
	members, ok := parseScored(pairs)
	if !ok {
		return notFloat
	}
	entry, answer := t.zaddEntry(key, set)
	if entry == nil {
		return answer
	}
	incr := set["INCR"]
	var added, updated int64
	for _, given := range members {
		old, has := entry.sorted.scores[given.member]
		score := given.score
		if has && incr && !set["NX"] {
			score += old
		}
		if math.IsNaN(score) {
			return scoreIsNaN
		}
		skipped := !has && set["XX"] || has && keepsScore(set, old, score)
		switch {
		case skipped && incr:
			return nilReply
		case skipped:
			continue
		case !has:
			added++
		case score != old:
			updated++
		}
		if !has || score != old {
			entry.sorted.set(given.member, score)
			t.touch(key)
		}
		if incr {
			return bulk(cFormat(score))
		}
	}
	if set["CH"] {
		added += updated
	}
	return intReply(added)
}

// zaddMisuse is the error of a ZADD whose options or arguments do not go together; nil if they do.
func zaddMisuse(pairs []string, set map[string]bool) *Reply {
	nx := set["NX"]
	lower := set["LT"]
	higher := set["GT"]
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		return &syntaxError
	case nx && set["XX"]:
		return &nxWithXX
	case nx && (higher || lower) || higher && lower:
		return &nxWithGTLT
	case set["INCR"] && len(pairs) > 2:
		return &incrOfSeveral
	}
	return nil
}

// zaddEntry is the sorted set that a ZADD adds to, which is created unless the options forbid it. If it is nil, the
// reply is the answer.
func (t *Table) zaddEntry(key string, set map[string]bool) (*entry, Reply) {
	entry, ok := t.find(key, kindZset)
	switch {
	case !ok:
		return nil, wrongType
	case entry != nil:
		return entry, Reply{}
	case set["XX"] && set["INCR"]:
		return nil, nilReply
	case set["XX"]:
		return nil, intReply(0)
	}
	return t.create(key, kindZset), Reply{}
}

// parseScored reads pairs of a score and a member.
func parseScored(pairs []string) (members []scored, ok bool) {
	members = make([]scored, len(pairs)/2)
	for i := range members {
		score, ok := parseScore(pairs[2*i])
		if !ok {
			return nil, false
		}
		members[i] = scored{score: score, member: pairs[2*i+1]}
	}
	return members, true
}

// keepsScore reports whether the options of a ZADD keep the old score of a member.
func keepsScore(set map[string]bool, old, score float64) bool {
	switch {
	case set["NX"]:
		return true
	case set["GT"]:
		return score <= old
	case set["LT"]:
		return score >= old
	}
	return false
}

func zscore(_ *Table, e *entry, args []string) Reply {
	if score, ok := e.sorted.scores[args[2]]; ok {
		return bulk(cFormat(score))
	}
	return nilReply
}

// parseTwo reads both ends of a range, or both numbers of a limit.
func parseTwo[T any](parse func(string) (T, bool), from, to string) (a, b T, ok bool) {
	a, first := parse(from)
	b, second := parse(to)
	return a, b, first && second
}

// zrank makes ZRANK, or ZREVRANK if reverse is set.
func zrank(reverse bool) func(*Table, []string) Reply {
	return of(kindZset, nilReply, func(_ *Table, e *entry, args []string) Reply {
		score, ok := e.sorted.scores[args[2]]
		if !ok {
			return nilReply
		}
		i := e.sorted.place(scored{score, args[2]})
		if reverse {
			i = len(e.sorted.order) - 1 - i
		}
		return intReply(int64(i))
	})
}

// spanned makes a command about the members in a span that is given by both of its ends: it counts them, and removes
// them if cut is set.
func spanned[T any](
	parse func(string) (T, bool), bad Reply, span func(z *zset, from, to T) (lo, hi int), cut bool,
) func(*Table, []string) Reply {
	return func(table *Table, args []string) Reply {
		from, to, ok := parseTwo(parse, args[2], args[3])
		if !ok {
			return bad
		}
		entry, answer := table.present(args[1], kindZset, intReply(0))
		if entry == nil {
			return answer
		}
		lo, hi := span(entry.sorted, from, to)
		if cut {
			entry.sorted.cut(lo, hi)
			table.dropEmpty(entry)
		}
		return intReply(int64(hi - lo))
	}
}

// rangeOptions say what a command of the ZRANGE family returns.
type rangeOptions struct {
	byScore, reverse, withScores bool
	// offset and count of LIMIT; a negative count is no limit.
	offset, count int64
}

// zrange makes a command of the ZRANGE family with options that its name implies;
// ZRANGE itself, if fixed is false, takes them as words.
func zrange(options rangeOptions, fixed bool) func(*Table, []string) Reply {
	options.count = -1
	return func(table *Table, args []string) Reply {
		rangeOptions := options // every call begins with what the name implies
		if bad := rangeOptions.parse(table, args[4:], fixed); bad != nil {
			return *bad
		}
		if rangeOptions.count != -1 && !rangeOptions.byScore {
			return limitOfRanks
		}
		from := args[2]
		to := args[3]
		if rangeOptions.byScore && rangeOptions.reverse {
			from, to = to, from
		}
		low, high, scores := parseTwo(parseBound, from, to)
		start, stop, whole := parseTwo(parseInt, from, to)
		switch {
		case rangeOptions.byScore && !scores:
			return badBound
		case !rangeOptions.byScore && !whole:
			return notInteger
		}
		entry, answer := table.present(args[1], kindZset, emptyArray)
		if entry == nil {
			return answer
		}
		order := entry.sorted.order
		if rangeOptions.reverse {
			order = slices.Clone(order)
			slices.Reverse(order)
		}
		var lo, hi int
		switch n := len(order); {
		case !rangeOptions.byScore:
			lo, hi = entry.sorted.ranks(start, stop)
		case rangeOptions.reverse:
			lo, hi = entry.sorted.between(low, high)
			lo, hi = n-hi, n-lo
		default:
			lo, hi = entry.sorted.between(low, high)
		}
		return rangeOptions.reply(order[lo:hi])
	}
}

// parse reads the words after the range.
func (o *rangeOptions) parse(table *Table, words []string, fixed bool) *Reply {
	for i := 0; i < len(words); i++ {
		switch text := strings.ToUpper(words[i]); {
		case text == "WITHSCORES":
			o.withScores = true
		case text == "LIMIT" && i+2 < len(words):
			var ok bool
			o.offset, o.count, ok = parseTwo(parseInt, words[i+1], words[i+2])
			if !ok {
				return &notInteger
			}
			i += 2
		case text == "REV" && !fixed:
			o.reverse = true
		case text == "BYSCORE" && !fixed && !o.byScore:
			o.byScore = true
		case text == "BYLEX" && !fixed && !o.byScore:
			reply := table.lacks("zrange bylex")
			return &reply
		default:
			return &syntaxError
		}
	}
	return nil
}

// reply lists members, after the limit.
func (o *rangeOptions) reply(list []scored) Reply {
	if o.byScore {
		if o.offset < 0 || o.offset > int64(len(list)) {
			list = nil
		} else {
			list = list[o.offset:]
		}
		if o.count >= 0 {
			list = list[:min(o.count, int64(len(list)))]
		}
	}
	out := Reply{Kind: Array}
	for _, scored := range list {
		out.Array = append(out.Array, bulk(scored.member))
		if o.withScores {
			out.Array = append(out.Array, bulk(cFormat(scored.score)))
		}
	}
	return out
}

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
	for _, scored := range z.order[lo:hi] {
		delete(z.scores, scored.member)
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
func parseScore(text string) (float64, bool) {
	if text == "" || strings.ContainsRune(text, '_') {
		return 0, false
	}
	digits := strings.ToLower(strings.TrimLeft(text, "+-"))
	if strings.HasPrefix(digits, "0x") && !strings.ContainsRune(digits, 'p') {
		text += "p0" // which strtod can do without
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && !math.IsNaN(value)
}

// parseBound reads one end of a range of scores. As in Redis, an empty one is 0,
// and blanks may precede the number.
func parseBound(text string) (b bound, ok bool) {
	text, b.exclusive = strings.CutPrefix(text, "(")
	if text == "" {
		return b, true
	}
	b.score, ok = parseScore(strings.TrimLeft(text, " \t\n\v\f\r"))
	return b, ok
}
