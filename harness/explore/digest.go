package explore

import (
	"math/bits"
	"time"
)

// digest is a 128-bit hash of what was folded into it, in that order. Two lanes
// make a chance collision, which would prune a state that was never met,
// negligible in searches of millions of states.
type digest struct{ a, b uint64 }

func (d *digest) num(v uint64) {
	d.a = (d.a ^ v) * 0x9E3779B97F4A7C15
	d.a ^= d.a >> 32
	hi, lo := bits.Mul64(d.b^v^0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
	d.b = hi ^ lo ^ d.a<<1
}

func (d *digest) text(s string) {
	d.num(uint64(len(s)) + 1)
	var word uint64
	n := 0
	for i := range len(s) {
		word = word<<8 | uint64(s[i])
		if n++; n == 8 {
			d.num(word)
			word, n = 0, 0
		}
	}
	if n > 0 {
		d.num(word)
	}
}

func (d *digest) moment(t time.Time) { d.num(uint64(t.UnixNano())) }

func (d *digest) fold(o digest) { d.num(o.a); d.num(o.b) }

func (d *digest) truth(b bool) {
	if b {
		d.num(1)
		return
	}
	d.num(0)
}
