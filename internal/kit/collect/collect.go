// Package collect puts together what has something in common.
package collect

import "slices"

// By are values by what they have in common, in the order in which that comes up.
type By[K comparable, V any] struct {
	Keys []K
	Of   map[K][]V
}

// Add puts a value into the group of a key.
func (g *By[K, V]) Add(key K, value V) {
	if g.Of == nil {
		g.Of = map[K][]V{}
	}
	if g.Of[key] == nil {
		g.Keys = append(g.Keys, key)
	}
	g.Of[key] = append(g.Of[key], value)
}

// Sort puts the largest groups first.
func (g *By[K, V]) Sort() {
	slices.SortStableFunc(g.Keys, func(a, b K) int { return len(g.Of[b]) - len(g.Of[a]) })
}

// In is the element of a list that is the same as x. If the list has none, x is appended, and was not known.
func In[T any](list *[]T, x T, same func(T) bool) (at *T, known bool) {
	i := slices.IndexFunc(*list, same)
	known = i >= 0
	if !known {
		i = len(*list)
		*list = append(*list, x)
	}
	return &(*list)[i], known
}

// Union appends of the further values those that the list does not hold.
func Union[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}
