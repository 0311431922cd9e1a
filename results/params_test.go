package results

import (
	"reflect"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/trouble"
)

// TestSettingsAreToldApart: runs that differ in a parameter are no rounds of one measurement, and no report has them in
// one table, unless the parameter is listed here.
func TestSettingsAreToldApart(t *testing.T) {
	alike := []string{"Label", "Client", "Unit", "PolicyLimit", "RateFrom", "Subjects", "Stream", "Requests", "DurationNS"}
	plain := Run{Identity: Identity{Strategy: "s"}}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Params]()) {
		if f.Anonymous { // its fields follow
			continue
		}
		other := plain
		set(t, reflect.ValueOf(&other.Params).Elem().FieldByIndex(f.Index))
		if got := other.setting() == plain.setting(); got != slices.Contains(alike, f.Name) {
			t.Errorf("of another %s the setting is the same: %t", f.Name, got)
		}
	}
	second := plain
	second.Params.Second = "10 routes: 100 requests per fixed 1m"
	if n := len(Summarise([]Run{plain, second})); n != 2 {
		t.Errorf("a run with a second quota and one without are %d measurement", n)
	}
}

func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch {
	case v.CanInt():
		v.SetInt(7)
	case v.CanFloat():
		v.SetFloat(7)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Slice:
		v.Set(reflect.ValueOf(trouble.MustParse("redis:away")))
	case v.Kind() == reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "x"}))
	default:
		t.Fatalf("a parameter of kind %s", v.Kind())
	}
}
