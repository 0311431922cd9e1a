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
	Add(&sum, b)
	return &sum
}

// Add adds the numbers of a part to those of a whole, fields of one name. A field that is
// tagged parts:"max" becomes the largest one, and parts:"-" is left to others. What is set in one of them is set.
func Add(whole, part any) {
	value := reflect.ValueOf(whole).Elem()
	from := reflect.ValueOf(part).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		x := value.Field(i)
		y := from.FieldByName(field.Name)
		how := field.Tag.Get("parts")
		switch {
		case how == "-":
		case x.Kind() == reflect.Bool:
			x.SetBool(x.Bool() || y.Bool())
		case x.CanInt() && how == "max":
			x.SetInt(max(x.Int(), y.Int()))
		case x.CanInt():
			x.SetInt(stat.Sum(x.Int(), y.Int()))
		case x.Type() == reflect.TypeFor[*int64]() && !y.IsNil():
			sum := y.Elem().Int()
			if !x.IsNil() {
				sum = stat.Sum(sum, x.Elem().Int())
			}
			x.Set(reflect.ValueOf(&sum))
		case x.CanFloat() && how == "max":
			x.SetFloat(max(x.Float(), y.Float()))
		case x.CanFloat():
			x.SetFloat(x.Float() + y.Float())
		}
	}
}
