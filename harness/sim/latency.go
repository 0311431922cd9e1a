package sim

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Table is a distribution of durations: points of its quantile function with
// straight lines between them. It is drawn from in integers, so that one seed
// gives one sequence on every machine.
type Table []Quantile

// Quantile is one point: the share, in parts per million, of all durations are
// at most At.
type Quantile struct {
	PPM uint32
	At  time.Duration
}

// always is the table of a single duration.
func always(duration time.Duration) Table { return Table{{0, duration}, {1e6, duration}} }

// lines are a [Table] to draw from: a simulation draws three times for each command.
type lines []line

// line is the part of a quantile function up to a share, in parts per billion.
type line struct {
	from, to, width uint64
	inverse         uint64 // of the width: 2^64 by it, rounded down
	rise            uint64
	at              time.Duration
	falls           bool
}

// scale of the drawn number against a table's: parts per billion.
const scale = 1000

func (t Table) lines() lines {
	if len(t) == 0 {
		return nil
	}
	if len(t) == 1 {
		return lines{{width: 1, inverse: math.MaxUint64, at: t[0].At}}
	}
	var out lines
	for i := 1; i < len(t); i++ {
		from := int64(t[i-1].PPM) * scale
		to := int64(t[i].PPM) * scale
		rise := int64(t[i].At - t[i-1].At)
		width := uint64(max(1, to-from))
		out = append(out, line{from: uint64(from), to: uint64(to), width: width, inverse: math.MaxUint64 / width,
			rise: uint64(abs(rise)), at: t[i-1].At, falls: rise < 0})
	}
	return out
}

// draw takes one duration.
func (l lines) draw(rng *rand.PCG) time.Duration {
	if len(l) == 0 {
		return 0
	}
	x, _ := bits.Mul64(rng.Uint64(), 1_000_000*scale)
	// Lines follow each other. Which one it is cannot be predicted, so no branch is to
	// depend on it.
	i := len(l) - 1
	for j := range len(l) - 1 {
		_, before := bits.Sub64(x, l[j].to, 0)
		i -= int(before)
	}
	line := &l[i]
	hi, lo := bits.Mul64(line.rise, x-line.from)
	part := line.divide(hi, lo)
	if line.falls {
		return line.at - time.Duration(part)
	}
	return line.at + time.Duration(part)
}

// divide divides a number by the line's width. A multiplication is faster, and at most a
// little too low.
func (s *line) divide(hi, lo uint64) uint64 {
	if hi != 0 {
		q, _ := bits.Div64(hi, lo, s.width)
		return q
	}
	q, _ := bits.Mul64(lo, s.inverse)
	for lo-q*s.width >= s.width {
		q++
	}
	return q
}

func abs(n int64) int64 { return max(n, -n) }

// Network is how long it takes to ask a store within one region, and how many
// commands the store works on at once.
type Network struct {
	Request, Service, Reply Table
	Servers                 int
}

// defaultRedis is ADR-005's Redis: 45 µs for a command in the median, and one
// thread that works on commands one after the other.
func defaultRedis() Network {
	leg := Table{{0, 12 * time.Microsecond}, {500_000, 18 * time.Microsecond}, {900_000, 24 * time.Microsecond},
		{990_000, 40 * time.Microsecond}, {999_000, 120 * time.Microsecond}, {1_000_000, 400 * time.Microsecond}}
	return Network{
		Request: leg, Reply: leg, Servers: 1,
		Service: Table{{0, 4 * time.Microsecond}, {500_000, 8 * time.Microsecond}, {900_000, 11 * time.Microsecond},
			{990_000, 20 * time.Microsecond}, {999_000, 80 * time.Microsecond}, {1_000_000, 300 * time.Microsecond}},
	}
}

// defaultPostgres is ADR-005's PostgreSQL: 5 ms for a statement in the
// median, 28 ms at the 99th percentile, and sixteen connections.
func defaultPostgres() Network {
	leg := always(100 * time.Microsecond)
	return Network{
		Request: leg, Reply: leg, Servers: 16,
		Service: Table{{0, 1500 * time.Microsecond}, {100_000, 2800 * time.Microsecond}, {500_000, 4800 * time.Microsecond},
			{900_000, 11 * time.Millisecond}, {990_000, 27800 * time.Microsecond}, {999_000, 60 * time.Millisecond},
			{1_000_000, 150 * time.Millisecond}},
	}
}

// server is a queue with as many servers as the store has threads or connections.
type server struct {
	request, service, reply lines

	free []int64 // when each is free again, in nanoseconds of virtual time
	// commands served.
	served int64
	// asked is when it was last asked, in nanoseconds since 1970.
	asked int64
	// replica puts back what a replica has, once it gets no further write; unfit is why
	// there can be none.
	replica func()
	unfit   error
}

func newServer(n Network) *server {
	return &server{request: n.Request.lines(), service: n.Service.lines(), reply: n.Reply.lines(),
		free: make([]int64, max(1, n.Servers))}
}

// serve takes a command that arrives at now and returns how long it takes until
// its effect. Commands must come in the order of their arrival.
func (s *server) serve(now int64, rng *rand.PCG) time.Duration {
	first := 0
	for i, at := range s.free {
		if at < s.free[first] {
			first = i
		}
	}
	begin := max(now, s.free[first])
	done := begin + int64(s.service.draw(rng))
	s.free[first] = done
	s.served++
	return time.Duration(done - now)
}
