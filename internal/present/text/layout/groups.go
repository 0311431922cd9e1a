package layout

import "slices"

// Groups are names by what they have in common, in the order in which that comes up.
type Groups[K comparable] struct {
	Keys []K
	Of   map[K][]string
}

// Add puts a name into the group of a key.
func (g *Groups[K]) Add(key K, name string) {
	if g.Of == nil {
		g.Of = map[K][]string{}
	}
	if g.Of[key] == nil {
		g.Keys = append(g.Keys, key)
	}
	g.Of[key] = append(g.Of[key], name)
}

// Sort puts the largest groups first.
func (g *Groups[K]) Sort() {
	slices.SortStableFunc(g.Keys, func(a, b K) int { return len(g.Of[b]) - len(g.Of[a]) })
}
