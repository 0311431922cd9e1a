package measure

import (
	"testing"
	"unsafe"
)

// Counters that are written by every worker must not share a cache line with
// what every worker reads.
func TestCountersHaveTheirOwnCacheLine(t *testing.T) {
	const line = 64
	var s subject
	if n := unsafe.Sizeof(s); n%line != 0 {
		t.Errorf("a subject takes %d bytes: the next one begins inside of a line", n)
	}
	if o := unsafe.Offsetof(s.first) + unsafe.Offsetof(s.first.Cell); o%line != 0 {
		t.Errorf("the counters begin at byte %d", o)
	}
	var d drive
	if gap := unsafe.Offsetof(d.next) - unsafe.Offsetof(d.win); gap < line {
		t.Errorf("the request counter is %d bytes behind what workers read", gap)
	}
}
