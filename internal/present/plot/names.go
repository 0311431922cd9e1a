package plot

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func nameStyle() draw.TextStyle {
	return aligned(textStyle(labelSize, ink, false), text.XLeft, text.YCenter)
}

// names are those of a panel's lines, folded.
func (g *figure) names(i int) []string {
	out := make([]string, len(g.panels[i].lines))
	for k, l := range g.panels[i].lines {
		if l.name != "" {
			if out[k] = drawable(l.name); !g.keyed {
				out[k] = fold(nameStyle(), out[k], nameWidth)
			}
		}
	}
	return out
}

const nameSpace = vg.Length(4) // between names

func nameHeight(name string) vg.Length {
	if name == "" {
		return 0
	}
	return blockHeight(nameStyle(), name) + nameSpace
}

func namesHeight(names []string) (sum vg.Length) {
	for _, n := range names {
		sum += nameHeight(n)
	}
	return sum
}

const keyRow = vg.Length(15)

// keyRows puts the named lines of a panel into rows.
func (g *figure) keyRows(i int) (rows [][]int) {
	free := vg.Length(0)
	for k, name := range g.names(i) {
		if name == "" {
			continue
		}
		w := swatchWidth + nameStyle().Width(name) + 16
		if w > free {
			rows, free = append(rows, nil), g.width-4*margin-60
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], k)
		free -= w
	}
	return rows
}

// drawKey draws these rows up from a height.
func (g *figure) drawKey(c draw.Canvas, i int, left, y vg.Length) {
	names := g.names(i)
	rows := g.keyRows(i)
	for r := range rows {
		at, x := y+vg.Length(len(rows)-1-r)*keyRow+6, left
		for _, k := range rows[r] {
			c.StrokeLine2(g.panels[i].lines[k].style.line, x, at, x+swatchWidth-6, at)
			c.FillText(nameStyle(), vg.Point{X: x + swatchWidth, Y: at}, names[k])
			x += swatchWidth + nameStyle().Width(names[k]) + 16
		}
	}
}

// drawNames sets the lines' names to the right of an area, each as near as there is
// room to where its line ends.
func (g *figure) drawNames(c draw.Canvas, i int, f frame, ends []vg.Length) {
	p, names := &g.panels[i], g.names(i)
	heights := make([]vg.Length, len(names))
	for k, n := range names {
		heights[k] = nameHeight(n)
	}
	thin := draw.LineStyle{Width: 0.7}
	for k, at := range spread(ends, heights, f.area.Min.Y, f.area.Max.Y) {
		if names[k] == "" {
			continue
		}
		l := &p.lines[k]
		x := f.area.Max.X + nameGap
		if last := l.last(); last >= 0 {
			if end := f.x.place(l.x[last], f.area.Min.X, f.area.Max.X); f.area.Max.X-end < 14 {
				thin.Color = pale(l.style.line.Color)
				c.StrokeLine2(thin, end+5, ends[k], x-1, at)
			}
		}
		c.StrokeLine2(l.style.line, x, at, x+swatchWidth-6, at)
		if len(l.marks) > 0 {
			l.style.mark(&c, vg.Point{X: x + (swatchWidth-6)/2, Y: at})
		}
		c.FillText(nameStyle(), vg.Point{X: x + swatchWidth, Y: at}, names[k])
	}
}

// spread returns the middles of names that want to be at given heights, with room for
// each: those that would overlap are moved as little as possible, in the order in which
// their lines end, and all stay between lo and hi.
func spread(wanted, heights []vg.Length, lo, hi vg.Length) []vg.Length {
	order := make([]int, 0, len(wanted))
	for i := range wanted {
		if heights[i] > 0 {
			order = append(order, i)
		}
	}
	// The first of a list is the topmost where several end at one height.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wanted[b], wanted[a]) })
	type block struct {
		members     []int
		top, height vg.Length
	}
	var blocks []block
	for _, i := range order {
		b := block{[]int{i}, wanted[i] + heights[i]/2, heights[i]}
		b.top = min(max(b.top, lo+b.height), hi)
		for len(blocks) > 0 && blocks[len(blocks)-1].top-blocks[len(blocks)-1].height < b.top {
			up := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			n, m := vg.Length(len(up.members)), vg.Length(len(b.members))
			// Where each member would have the block's top, on average.
			top := (up.top*n + (b.top+up.height)*m) / (n + m)
			b = block{append(up.members, b.members...), top, up.height + b.height}
			b.top = min(max(b.top, lo+b.height), hi)
		}
		blocks = append(blocks, b)
	}
	out := make([]vg.Length, len(wanted))
	for _, b := range blocks {
		y := b.top
		for _, i := range b.members {
			out[i] = y - heights[i]/2
			y -= heights[i]
		}
	}
	return out
}
