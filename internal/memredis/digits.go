package memredis

import "strconv"

// digits keeps how numbers are written in decimal: limits and costs come again
// and again. It is a cache with one place per hash, so that a miss costs what no
// cache would; nothing but speed depends on what is in it.
type digits [places]decimal

type decimal struct {
	number int64
	text   string
}

const places = 1 << 8

// integer is a whole number in decimal.
func (d *digits) integer(n int64) string {
	p := &d[uint64(n)*0x9E3779B97F4A7C15>>56]
	if p.number != n || p.text == "" {
		*p = decimal{n, strconv.FormatInt(n, 10)}
	}
	return p.text
}
