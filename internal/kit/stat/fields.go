package stat

import (
	"reflect"
	"strconv"
	"time"
)

// AddFields adds the numbers of a part to those of a whole, fields of one name. A field that is
// tagged parts:"max" becomes the largest one, and parts:"-" is left to others. What is set in one of them is set.
func AddFields(whole, part any) {
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
			x.SetInt(Sum(x.Int(), y.Int()))
		case x.Type() == reflect.TypeFor[*int64]() && !y.IsNil():
			sum := y.Elem().Int()
			if !x.IsNil() {
				sum = Sum(sum, x.Elem().Int())
			}
			x.Set(reflect.ValueOf(&sum))
		case x.CanFloat() && how == "max":
			x.SetFloat(max(x.Float(), y.Float()))
		case x.CanFloat():
			x.SetFloat(x.Float() + y.Float())
		}
	}
}

// Percent is part in percent of whole, and 0 if there is no whole.
func Percent[T int64 | float64](part, whole T) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// ParseValue is the value of a parameter as a number: numbers as they are, times in nanoseconds.
func ParseValue(value string) (x float64, ok bool) {
	if x, err := strconv.ParseFloat(value, 64); err == nil {
		return x, true
	}
	if duration, err := time.ParseDuration(value); err == nil {
		return float64(duration), true
	}
	return 0, false
}
