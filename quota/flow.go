package quota

import (
	"cmp"
	"math"
	"math/bits"
)

// Flow is the rate at which a bucket is refilled, in real time and without
// rounding. The zero value refills nothing.
type Flow struct {
	units  int64 // per length
	length int64 // nanoseconds
}

// Level is an amount of units that need not be whole: Units and Part of them, with
// Part counting from 0 to one less than the flow's length in nanoseconds. Levels of
// one flow are compared by [Level.Compare].
type Level struct {
	Units, Part int64
}

// Flow returns the refill of a bucket's window.
func (w Window) Flow() Flow { return Flow{w.Refill, int64(w.RealLength())} }

// At is how much has flowed in at ns nanoseconds from the moment 0; before it, the
// amount is negative. It saturates at 2^61 units.
func (f Flow) At(ns int64) Level {
	if f.units <= 0 || f.length <= 0 {
		return Level{}
	}
	if ns < 0 {
		level := f.At(-ns)
		if level.Part == 0 {
			return Level{-level.Units, 0}
		}
		return Level{-level.Units - 1, f.length - level.Part}
	}
	hi, lo := bits.Mul64(uint64(ns), uint64(f.units))
	if hi >= uint64(f.length) {
		return Level{Units: most}
	}
	units, part := bits.Div64(hi, lo, uint64(f.length))
	if units > most {
		return Level{Units: most}
	}
	return Level{int64(units), int64(part)}
}

const most = 1 << 61

// Less is l less m.
func (f Flow) Less(l, m Level) Level {
	out := Level{l.Units - m.Units, l.Part - m.Part}
	if out.Part < 0 {
		out.Units--
		out.Part += f.length
	}
	return out
}

// Until is how many nanoseconds it takes for the amount to flow in, rounded up; 0
// if it is not above 0. It saturates.
func (f Flow) Until(level Level) int64 {
	if f.units <= 0 || level.Units < 0 || level == (Level{}) {
		return 0
	}
	hi, lo := bits.Mul64(uint64(level.Units), uint64(f.length))
	lo, carry := bits.Add64(lo, uint64(level.Part), 0)
	hi += carry
	lo, carry = bits.Add64(lo, uint64(f.units-1), 0)
	hi += carry
	if hi >= uint64(f.units) {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, uint64(f.units))
	return int64(min(ns, math.MaxInt64))
}

// Compare is negative, 0 or positive if l is less than, equal to or more than level.
func (l Level) Compare(level Level) int {
	if l.Units != level.Units {
		return cmp.Compare(l.Units, level.Units)
	}
	return cmp.Compare(l.Part, level.Part)
}

// Ceil is the least whole number of units that is not below the level.
func (l Level) Ceil() int64 {
	if l.Part > 0 {
		return l.Units + 1
	}
	return l.Units
}

// Plus is the level plus whole units.
func (l Level) Plus(units int64) Level { return Level{l.Units + units, l.Part} }
