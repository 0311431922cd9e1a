package memredis

import (
	"math"
	"slices"
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

func zadd(t *Table, args []string) Reply {
	set, pairs := options(args[2:], "NX", "XX", "GT", "LT", "CH", "INCR")
	return t.zadd(args[1], pairs, set)
}

func zincrby(t *Table, args []string) Reply { return t.zadd(args[1], args[2:], increment) }

// increment are the options of ZINCRBY.
var increment = map[string]bool{"INCR": true}

func (t *Table) zadd(key string, pairs []string, set map[string]bool) Reply {
	nx, xx, incr := set["NX"], set["XX"], set["INCR"]
	lower, higher := set["LT"], set["GT"]
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		return syntaxError
	case nx && xx:
		return nxWithXX
	case nx && (higher || lower) || higher && lower:
		return nxWithGTLT
	case incr && len(pairs) > 2:
		return incrOfSeveral
	}
	scores := make([]float64, len(pairs)/2)
	for i := range scores {
		var ok bool
		if scores[i], ok = parseScore(pairs[2*i]); !ok {
			return notFloat
		}
	}
	e, ok := t.find(key, kindZset)
	switch {
	case !ok:
		return wrongType
	case e == nil && xx && incr:
		return nilReply
	case e == nil && xx:
		return intReply(0)
	case e == nil:
		e = t.create(key, kindZset)
	}
	var added, updated int64
	for i, score := range scores {
		member := pairs[2*i+1]
		old, has := e.sorted.scores[member]
		if has && incr && !nx {
			score += old
		}
		if math.IsNaN(score) {
			return scoreIsNaN
		}
		if has && (nx || higher && score <= old || lower && score >= old) || !has && xx {
			if incr {
				return nilReply
			}
			continue
		}
		switch {
		case !has:
			added++
		case score != old:
			updated++
		}
		if !has || score != old {
			e.sorted.set(member, score)
			t.touch(key)
		}
		if incr {
			return bulk(scoreText(score))
		}
	}
	if set["CH"] {
		added += updated
	}
	return intReply(added)
}

func zscore(_ *Table, e *entry, args []string) Reply {
	if score, ok := e.sorted.scores[args[2]]; ok {
		return bulk(scoreText(score))
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

// spanned makes a command about the members in a span that is given by both of its ends: it counts them, and removes them if
// cut is set.
func spanned[T any](
	parse func(string) (T, bool), bad Reply, span func(z *zset, from, to T) (lo, hi int), cut bool,
) func(*Table, []string) Reply {
	return func(t *Table, args []string) Reply {
		from, to, ok := parseTwo(parse, args[2], args[3])
		if !ok {
			return bad
		}
		e, answer := t.present(args[1], kindZset, intReply(0))
		if e == nil {
			return answer
		}
		lo, hi := span(e.sorted, from, to)
		if cut {
			e.sorted.cut(lo, hi)
			t.dropEmpty(e)
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
func zrange(o rangeOptions, fixed bool) func(*Table, []string) Reply {
	o.count = -1
	return func(t *Table, args []string) Reply {
		o := o // every call begins with what the name implies
		if bad := o.parse(t, args[4:], fixed); bad != nil {
			return *bad
		}
		if o.count != -1 && !o.byScore {
			return limitOfRanks
		}
		from, to := args[2], args[3]
		if o.byScore && o.reverse {
			from, to = to, from
		}
		low, high, scores := parseTwo(parseBound, from, to)
		start, stop, whole := parseTwo(parseInt, from, to)
		switch {
		case o.byScore && !scores:
			return badBound
		case !o.byScore && !whole:
			return notInteger
		}
		e, answer := t.present(args[1], kindZset, emptyArray)
		if e == nil {
			return answer
		}
		order := e.sorted.order
		if o.reverse {
			order = slices.Clone(order)
			slices.Reverse(order)
		}
		var lo, hi int
		switch n := len(order); {
		case !o.byScore:
			lo, hi = e.sorted.ranks(start, stop)
		case o.reverse:
			lo, hi = e.sorted.between(low, high)
			lo, hi = n-hi, n-lo
		default:
			lo, hi = e.sorted.between(low, high)
		}
		return o.reply(order[lo:hi])
	}
}

// parse reads the words after the range.
func (o *rangeOptions) parse(t *Table, words []string, fixed bool) *Reply {
	for i := 0; i < len(words); i++ {
		switch w := strings.ToUpper(words[i]); {
		case w == "WITHSCORES":
			o.withScores = true
		case w == "LIMIT" && i+2 < len(words):
			var ok bool
			if o.offset, o.count, ok = parseTwo(parseInt, words[i+1], words[i+2]); !ok {
				return &notInteger
			}
			i += 2
		case w == "REV" && !fixed:
			o.reverse = true
		case w == "BYSCORE" && !fixed && !o.byScore:
			o.byScore = true
		case w == "BYLEX" && !fixed && !o.byScore:
			r := t.lacks("zrange bylex")
			return &r
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
	for _, s := range list {
		out.Array = append(out.Array, bulk(s.member))
		if o.withScores {
			out.Array = append(out.Array, bulk(scoreText(s.score)))
		}
	}
	return out
}
