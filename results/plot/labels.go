package plot

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/plot/vg"
)

// label is a text that belongs to a dot and has to find a place.
type label struct {
	dot           vg.Point
	width, height vg.Length
}

const (
	// labelGap is kept free between labels, and between a label and a dot.
	labelGap = vg.Length(2.5)
	// leaderFrom is the distance from a dot above which a line leads to its label.
	leaderFrom = vg.Length(12)
)

// segment is a straight line.
type segment struct{ a, b vg.Point }

// placeLabels finds a place for every label inside area, so that none overlaps
// another or a dot. It is deterministic. ok is false where there is not enough
// room.
//
// Each label tries places around its dot on growing rings and takes the cheapest
// free one. Distance costs, and so does whatever makes reading harder: leaders
// that cross, other dots nearby, and the given lines underneath. Since the first
// to choose cannot know what the others need, every label gets to choose again
// with all others in place.
func placeLabels(labels []label, area vg.Rectangle, dotRadius vg.Length, lines []segment) (places []vg.Rectangle, ok bool) {
	p := placer{labels: labels, area: area, places: make([]vg.Rectangle, len(labels)), set: make([]bool, len(labels)), lines: lines}
	for _, l := range labels {
		r := dotRadius + labelGap
		p.dots = append(p.dots, vg.Rectangle{Min: vg.Point{X: l.dot.X - r, Y: l.dot.Y - r}, Max: vg.Point{X: l.dot.X + r, Y: l.dot.Y + r}})
	}
	order := make([]int, len(labels))
	for i := range order {
		order[i] = i
	}
	cheapest := math.Inf(1)
	rng := rand.New(rand.NewPCG(1, 2)) // always the same, so that plots are
	tries := max(1, attempts*1000/(1000+len(labels)*len(labels)))
	for range tries {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if cost, found := p.settle(order, dotRadius); found && cost < cheapest {
			cheapest, places, ok = cost, slices.Clone(p.places), true
		} else if !found {
			break // it is tight, and more room will serve better than more tries
		}
	}
	return places, ok
}

const (
	// attempts in different orders, fewer for many labels. Where two labels would
	// have to move at once one order gets stuck that another does not.
	attempts = 12
	// sweeps in which every label chooses once.
	sweeps = 4
)

// settle places all labels in that order, and prices the result.
func (p *placer) settle(order []int, dotRadius vg.Length) (cost float64, ok bool) {
	clear(p.set)
	for range sweeps {
		cost = 0
		before := slices.Clone(p.places)
		for _, i := range order {
			p.set[i] = false
			best, price, found := p.choose(i, dotRadius)
			if !found {
				return 0, false
			}
			p.places[i], p.set[i] = best, true
			cost += price
		}
		if slices.Equal(before, p.places) {
			break
		}
	}
	return cost, true
}

type placer struct {
	labels []label
	area   vg.Rectangle
	dots   []vg.Rectangle // with their gap
	lines  []segment
	places []vg.Rectangle
	set    []bool
}

// choose returns the cheapest free place for a label.
func (p *placer) choose(i int, dotRadius vg.Length) (best vg.Rectangle, cheapest float64, found bool) {
	l := p.labels[i]
	const angles = 24
	cheapest = math.Inf(1)
	reach := distance(p.area.Min, p.area.Max)
	for d := dotRadius + 3; d < reach; d += max(3, d/7) {
		if float64(d) > cheapest { // farther places cost at least their distance
			break
		}
		for a := range angles {
			sin, cos := math.Sincos(2 * math.Pi * float64(a) / angles)
			r := around(l, vg.Length(cos), vg.Length(sin), d)
			// Beside the dot reads best, left to right first.
			cost := float64(d) * (1.12 - 0.12*cos*cos)
			if cos < 0 {
				cost++
			}
			if cost >= cheapest || !inside(r, p.area) || p.taken(i, r) {
				continue
			}
			if cost += p.crossings(i, r); cost < cheapest {
				cheapest, best, found = cost, r, true
			}
		}
	}
	return best, cheapest, found
}

// around puts a label in a direction from its dot, its nearest edge at distance d.
func around(l label, cos, sin, d vg.Length) vg.Rectangle {
	// The anchor slides along the label's edge with the direction, so that
	// labels to the right begin at the dot, and labels above are centred.
	x := l.dot.X + cos*d - l.width*(1-cos)/2
	y := l.dot.Y + sin*d - l.height*(1-sin)/2
	return vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + l.width, Y: y + l.height}}
}

func (p *placer) taken(i int, r vg.Rectangle) bool {
	for _, b := range p.dots {
		if overlap(r, b) {
			return true
		}
	}
	grown := vg.Rectangle{Min: vg.Point{X: r.Min.X - labelGap, Y: r.Min.Y - labelGap}, Max: vg.Point{X: r.Max.X + labelGap, Y: r.Max.Y + labelGap}}
	for j, o := range p.places {
		if j != i && p.set[j] && overlap(grown, o) {
			return true
		}
	}
	return false
}

// crossings prices what makes a label at r harder to read or to attribute.
func (p *placer) crossings(i int, r vg.Rectangle) float64 {
	const (
		throughLabel  = 1000
		throughLeader = 80
		throughDot    = 70
		nearerDot     = 30
		overLine      = 8
	)
	cost := 0.0
	from, to, mine := leader(p.labels[i], r)
	own := distance(from, to)
	for j, o := range p.labels {
		if j == i {
			continue
		}
		if mine && passes(from, to, o.dot) {
			cost += throughDot
		}
		if distance(o.dot, nearest(o.dot, r)) < own {
			cost += nearerDot
		}
		if !p.set[j] {
			continue
		}
		if mine && cuts(from, to, p.places[j]) {
			cost += throughLabel
		}
		f, t, theirs := leader(o, p.places[j])
		if theirs && cuts(f, t, r) {
			cost += throughLabel
		}
		if mine && theirs && cross(from, to, f, t) {
			cost += throughLeader
		}
	}
	for _, l := range p.lines {
		if cuts(l.a, l.b, r) {
			cost += overLine
		}
	}
	return cost
}

// passes reports whether the way from a dot to b leads over another dot. Leaving
// a dot that overlaps the other one, in a direction away from it, does not.
func passes(a, b, other vg.Point) bool {
	t := ((other.X-a.X)*(b.X-a.X) + (other.Y-a.Y)*(b.Y-a.Y)) / ((b.X-a.X)*(b.X-a.X) + (b.Y-a.Y)*(b.Y-a.Y))
	if t <= 0 {
		return false
	}
	t = min(t, 1)
	return distance(other, vg.Point{X: a.X + t*(b.X-a.X), Y: a.Y + t*(b.Y-a.Y)}) < dotRadius
}

// nearest is the point of r that is closest to p.
func nearest(p vg.Point, r vg.Rectangle) vg.Point {
	return vg.Point{X: min(max(p.X, r.Min.X), r.Max.X), Y: min(max(p.Y, r.Min.Y), r.Max.Y)}
}

// leader is the line from a dot to the nearest point of its label. ok is false
// where the label is so near that it needs none.
func leader(l label, r vg.Rectangle) (from, to vg.Point, ok bool) {
	to = nearest(l.dot, r)
	return l.dot, to, distance(l.dot, to) > leaderFrom
}

func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
}

func inside(r, area vg.Rectangle) bool {
	return r.Min.X >= area.Min.X && r.Min.Y >= area.Min.Y && r.Max.X <= area.Max.X && r.Max.Y <= area.Max.Y
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

// cuts reports whether the segment a-b runs through r.
func cuts(a, b vg.Point, r vg.Rectangle) bool {
	in := func(p vg.Point) bool { return p.X > r.Min.X && p.X < r.Max.X && p.Y > r.Min.Y && p.Y < r.Max.Y }
	return in(a) || in(b) || cross(a, b, r.Min, r.Max) ||
		cross(a, b, vg.Point{X: r.Min.X, Y: r.Max.Y}, vg.Point{X: r.Max.X, Y: r.Min.Y})
}

// cross reports whether two segments cross; touching at an end does not count.
func cross(a, b, c, d vg.Point) bool {
	side := func(p, q, r vg.Point) float64 {
		return float64((q.X-p.X)*(r.Y-p.Y) - (q.Y-p.Y)*(r.X-p.X))
	}
	return side(a, b, c)*side(a, b, d) < 0 && side(c, d, a)*side(c, d, b) < 0
}
