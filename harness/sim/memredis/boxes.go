package memredis

import (
	"hash/maphash"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// boxes keeps what converting between Redis and Lua would allocate anew for every
// call: keys, limits and costs come again and again. Each is a cache with one
// place per hash, so that a miss costs what no cache would; nothing but speed
// depends on what is in it.
type boxes struct {
	texts   [places]lua.LValue // of type LString
	numbers [places]lua.LValue // of type LNumber
	digits  [places]decimal
}

// decimal is a number and how it is written.
type decimal struct {
	number int64
	text   string
}

const (
	places = 1 << 10
	// longest string that is kept; others hardly come again.
	longest = 128
)

var boxSeed = maphash.MakeSeed()

// text is a string as Lua has it.
func (b *boxes) text(s string) lua.LValue {
	if len(s) > longest {
		return lua.LString(s)
	}
	p := &b.texts[maphash.String(boxSeed, s)%places]
	if kept, ok := (*p).(lua.LString); ok && string(kept) == s {
		return *p
	}
	v := lua.LValue(lua.LString(s))
	*p = v
	return v
}

// number is a number as Lua has it.
func (b *boxes) number(f float64) lua.LValue {
	bits := math.Float64bits(f)
	p := &b.numbers[spread(bits)]
	if kept, ok := (*p).(lua.LNumber); ok && math.Float64bits(float64(kept)) == bits {
		return *p
	}
	v := lua.LValue(lua.LNumber(f))
	*p = v
	return v
}

// integer is a whole number written in decimal.
func (b *boxes) integer(n int64) string {
	p := &b.digits[spread(uint64(n))]
	if p.number != n || p.text == "" {
		*p = decimal{n, strconv.FormatInt(n, 10)}
	}
	return p.text
}

func spread(x uint64) uint64 { return x * 0x9E3779B97F4A7C15 >> 54 }
