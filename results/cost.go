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
func perDecision(c *Cost) (out []*float64) {
	v := reflect.ValueOf(c).Elem()
	for _, f := range costFields {
		if p, ok := v.FieldByIndex(f.Index).Addr().Interface().(*float64); ok {
			out = append(out, p)
		}
	}
	return out
}

// medianCost takes the median of every figure per decision, and the worst count
// of keys.
func medianCost(costs []Cost) Cost {
	var c Cost
	values := make([][]float64, len(costFields))
	for i := range costs {
		for k, from := range perDecision(&costs[i]) {
			values[k] = append(values[k], *from)
		}
		c.KeysAtEnd = max(c.KeysAtEnd, costs[i].KeysAtEnd)
		c.KeysWithoutTTL = max(c.KeysWithoutTTL, costs[i].KeysWithoutTTL)
	}
	for k, to := range perDecision(&c) {
		*to = stat.Median(values[k])
	}
	return c
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
	to := reflect.ValueOf(whole).Elem()
	from := reflect.ValueOf(part).Elem()
	for i := range to.NumField() {
		f := to.Type().Field(i)
		x := to.Field(i)
		y := from.FieldByName(f.Name)
		how := f.Tag.Get("parts")
		switch {
		case how == "-":
		case x.Kind() == reflect.Bool:
			x.SetBool(x.Bool() || y.Bool())
		case x.CanInt() && how == "max":
			x.SetInt(max(x.Int(), y.Int()))
		case x.CanInt():
			x.SetInt(x.Int() + y.Int())
		case x.Type() == reflect.TypeFor[*int64]() && !y.IsNil():
			sum := y.Elem().Int()
			if !x.IsNil() {
				sum += x.Elem().Int()
			}
			x.Set(reflect.ValueOf(&sum))
		case x.CanFloat() && how == "max":
			x.SetFloat(max(x.Float(), y.Float()))
		case x.CanFloat():
			x.SetFloat(x.Float() + y.Float())
		}
	}
}
