package lease

import "testing"

// TestExhausted: while an instance has a block, others ask Redis whether units have come back. Once none has,
// the window's units are gone for good, and rejections cost no command, until the job forgets the subject or the
// limit is another one.
func TestExhausted(t *testing.T) {
	for _, options := range []string{"block=4", "block=4,expired=free"} {
		b := newBed(t)
		p := limitOf(10)
		s := b.open(options, 2)
		other := b.open(options, 2)
		commands := func(what string, l *lease, n int, admitted, want int64) {
			t.Helper()
			before := b.commands
			b.want("admitted: "+what+", "+options, b.takes(l, p, n), admitted)
			b.want("commands: "+what+", "+options, int64(b.commands-before), want)
		}
		commands("a block of 4", s, 1, 1, 1)
		commands("what is left in Redis", other, 6, 6, 4)
		commands("the block is not settled", other, 3, 0, 3)
		commands("two of the block", s, 2, 2, 0)
		b.round(s) // it is in use
		b.round(s)
		commands("the last one came back", other, 3, 1, 2)
		commands("nothing comes back", other, 5, 0, 0)
		commands("nor for the other instance", s, 5, 0, 1)
		if d := b.take(s, p, 1); d.Remaining != 0 || d.Degraded || d.RetryAfter <= 0 {
			t.Errorf("%+v", d)
		}
		b.round(other)
		b.round(other)
		commands("forgotten by the job", other, 5, 0, 1)
		p = limitOf(12)
		commands("two more", other, 5, 2, 3)
		p = limitOf(5)
		commands("fewer", s, 2, 0, 1)
		if d := b.take(s, p, 1); d.Remaining != 0 {
			t.Errorf("%+v: more is used than the limit", d)
		}
	}
	// What fits into the rest is asked for.
	b := newBed(t)
	s := b.open("block=1", 1)
	p := limitOf(10)
	b.takes(s, p, 7)
	for range 2 {
		if d := b.take(s, p, 4); d.Admitted || d.Remaining != 3 {
			t.Errorf("%+v, want 3 that remain", d)
		}
	}
	b.want("commands", int64(b.commands), 8)
	if d := b.take(s, p, 3); !d.Admitted {
		t.Errorf("%+v", d)
	}
}
