package results

import (
	"cmp"
	"reflect"

	"github.com/quotabench/quotabench/internal/kit/stat"
)

// costFields are found once: a comparison takes the median of thousands of costs.
var costFields = reflect.VisibleFields(reflect.TypeFor[Cost]())

// perDecision are the figures of a cost that are means over decisions: all but counts of
// keys.
func perDecision(cost *Cost) (out []*float64) {
	value := reflect.ValueOf(cost).Elem()
	for _, field := range costFields {
		if p, ok := value.FieldByIndex(field.Index).Addr().Interface().(*float64); ok {
			out = append(out, p)
		}
	}
	return out
}

// medianCost takes the median of every figure per decision, and the worst count
// of keys.
func medianCost(costs []Cost) Cost {
	var cost Cost
	values := make([][]float64, len(costFields))
	for i := range costs {
		for k, from := range perDecision(&costs[i]) {
			values[k] = append(values[k], *from)
		}
		cost.KeysAtEnd = max(cost.KeysAtEnd, costs[i].KeysAtEnd)
		cost.KeysWithoutTTL = max(cost.KeysWithoutTTL, costs[i].KeysWithoutTTL)
	}
	for k, to := range perDecision(&cost) {
		*to = stat.Median(values[k])
	}
	return cost
}

// together is the sum of two parts of one type as [add] makes it, each of which may be absent.
func together[T any](a, b *T) *T {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a
	stat.AddFields(&sum, b)
	return &sum
}
