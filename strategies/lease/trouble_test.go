package lease

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/testkit"
)

// What a scenario below has: a limit of 100 units that two instances share, and blocks of 20. Paused or
// dead is an instance for longer than the ttl of 10 s.
const (
	troubled  = 100
	longPause = 11 * time.Second
	// An instance sends fewer commands until the limit is reached.
	mostCommands = 20
)

// drain asks until a request is rejected.
func (b *bed) drain(s *lease) (admitted int64) {
	b.Helper()
	for b.take(s, limitOf(troubled), 1).Admitted {
		admitted++
	}
	return admitted
}

// ends asks until nobody gets anything any more, before and after the deadlines of blocks, and
// returns the units over the limit, and those that nobody has got.
func (b *bed) ends(admitted int64, living ...*lease) (leak, stranded int64) {
	b.Helper()
	for range 3 {
		for _, s := range slices.Concat(living, living) {
			admitted += b.drain(s)
		}
		b.pass(longPause)
		for _, s := range living {
			b.round(s)
		}
	}
	return max(0, admitted-troubled), max(0, troubled-admitted)
}

// loses has Redis lose what it has been told since it was kept, or all of it.
func (b *bed) loses(kept func()) {
	b.Helper()
	if kept != nil {
		kept()
		return
	}
	if err := b.client.FlushDB(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	if err := script.Load(b.Context(), b.client).Err(); err != nil {
		b.Fatal(err)
	}
}

// killed is what becomes of an instance that dies after any number of requests, and in any of its
// commands, before or after its effect: the most that leaks, and the most that is stranded.
func killed(t *testing.T, options string) (leak, stranded int64) {
	t.Helper()
	p := limitOf(troubled)
	dies := func(run func(b *bed, s *lease) int64) {
		b := newBed(t)
		s := b.open(options, 2)
		other := b.open(options, 2)
		admitted := run(b, s)
		b.fail = nil
		l, n := b.ends(admitted, other)
		leak = max(leak, l)
		stranded = max(stranded, n)
	}
	for n := range troubled {
		dies(func(b *bed, s *lease) int64 { return b.takes(s, p, n) })
	}
	for k := 1; k <= mostCommands; k++ {
		for _, late := range []bool{false, true} {
			dies(func(b *bed, s *lease) (admitted int64) {
				for range 2 * troubled {
					if b.commands == k-1 {
						b.fail = errors.New("killed")
						b.late = late
					}
					admitted += b.takes(s, p, 1)
					if b.commands == k {
						break
					}
				}
				return admitted
			})
		}
	}
	return leak, stranded
}

// TestTrouble: what leaks and what is stranded is what the page says.
func TestTrouble(t *testing.T) {
	p := limitOf(troubled)
	trouble := map[string]func(b *bed, s, other *lease) (admitted int64, living []*lease){
		"pause of 11 s after 5 requests": func(b *bed, s, other *lease) (int64, []*lease) {
			admitted := b.takes(s, p, 5)
			b.pass(longPause)
			return admitted + b.drain(other), []*lease{s, other}
		},
		"Redis restarts empty after 25 requests": func(b *bed, s, other *lease) (int64, []*lease) {
			admitted := b.takes(s, p, 25)
			b.loses(nil)
			return admitted, []*lease{s, other}
		},
		"failover that loses a draw": func(b *bed, s, other *lease) (int64, []*lease) {
			admitted := b.takes(s, p, 20)
			kept := b.table.Copy()
			admitted += b.takes(s, p, 5)
			b.loses(kept)
			return admitted, []*lease{s, other}
		},
	}
	rows := map[string]string{"killed after any request or command": ""}
	for what := range trouble {
		rows[what] = ""
	}
	for what := range rows {
		row := "|" + what
		for _, options := range []string{"block=20", "block=20,expired=free"} {
			var leak, stranded int64
			if cause := trouble[what]; cause != nil {
				b := newBed(t)
				admitted, living := cause(b, b.open(options, 2), b.open(options, 2))
				leak, stranded = b.ends(admitted, living...)
			} else {
				leak, stranded = killed(t, options)
			}
			row += fmt.Sprintf("|%d, %d", leak, stranded)
		}
		row += "|"
		if !slices.Contains(testkit.Strategy(t, "lease").Notes.Trouble, row) {
			t.Errorf("the page does not have %s", row)
		}
	}
	if n := len(testkit.Strategy(t, "lease").Notes.Trouble); n != len(rows)+2 {
		t.Errorf("the table has %d lines, and %d causes were tried", n, len(rows))
	}
}
