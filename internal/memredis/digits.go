package memredis

import "strconv"

// digits keeps how numbers are written in decimal: limits and costs come again
// and again. It is a cache with one place per hash, so that a miss costs what no
// cache would; nothing but speed depends on what is in it.
type digits [places]kept

type kept struct {
	number int64
	text   string
}

const places = 1 << 8

// integer is a whole number in decimal.
func (d *digits) integer(n int64) string {
	p := &d[uint64(n)*0x9E3779B97F4A7C15>>56]
	if p.number != n || p.text == "" {
		*p = kept{n, strconv.FormatInt(n, 10)}
	}
	return p.text
}

// decimal is a whole number in decimal. Small ones, which most counts are, are parts of one text.
func decimal(n int64) string {
	if n < 0 || n >= 10_000 {
		return strconv.FormatInt(n, 10)
	}
	width := 4
	switch {
	case n < 10:
		width = 1
	case n < 100:
		width = 2
	case n < 1000:
		width = 3
	}
	return small[4*n+4-int64(width) : 4*n+4]
}

// small holds the numbers below 10,000 one after the other, with four digits each.
var small = func() string {
	b := make([]byte, 0, 4*10_000)
	for n := range 10_000 {
		b = append(b, byte('0'+n/1000), byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
	}
	return string(b)
}()
