package engine

import (
	"math/bits"
	"time"
)

// Digest is a 128-bit hash of what was folded into it, in that order. Two lanes
// make a chance collision, which would prune a state that was never met,
// negligible in searches of millions of states.
type Digest struct{ A, B uint64 }

// Num folds a number in.
func (d *Digest) Num(v uint64) {
	d.A = (d.A ^ v) * 0x9E3779B97F4A7C15
	d.A ^= d.A >> 32
	hi, lo := bits.Mul64(d.B^v^0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
	d.B = hi ^ lo ^ d.A<<1
}

// Text folds a text in.
func (d *Digest) Text(text string) {
	d.Num(uint64(len(text)) + 1)
	for ; len(text) >= 8; text = text[8:] {
		d.Num(uint64(text[7]) | uint64(text[6])<<8 | uint64(text[5])<<16 | uint64(text[4])<<24 |
			uint64(text[3])<<32 | uint64(text[2])<<40 | uint64(text[1])<<48 | uint64(text[0])<<56)
	}
	if len(text) > 0 {
		var word uint64
		for i := range len(text) {
			word = word<<8 | uint64(text[i])
		}
		d.Num(word)
	}
}

// Moment folds a time in.
func (d *Digest) Moment(t time.Time) { d.Num(uint64(t.UnixNano())) }

// Fold folds another digest in.
func (d *Digest) Fold(digest Digest) { d.Num(digest.A); d.Num(digest.B) }

// Bool folds a truth value in.
func (d *Digest) Bool(b bool) {
	if b {
		d.Num(1)
		return
	}
	d.Num(0)
}
