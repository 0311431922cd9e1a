package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// sameFigure is how far two computations of one figure may differ: processors
// round sums of products differently.
const sameFigure = 1e-9

// checkSummaries replaces the summaries of a file by those that follow from its
// runs, and fails if the file says something else.
func checkSummaries(f *results.File) error {
	stored := f.Summaries
	f.Summaries = results.Summarise(f.Runs)
	*f = complete(*f)
	if path := notFinite(reflect.ValueOf(*f), ""); path != "" {
		return fmt.Errorf("%s is not a finite number", path)
	}
	if len(stored) != len(f.Summaries) {
		return fmt.Errorf("summaries: there are %d, and %d follow from the runs: measure again, or restore the file", len(stored),
			len(f.Summaries))
	}
	for i := range stored {
		if path := difference(reflect.ValueOf(stored[i]), reflect.ValueOf(f.Summaries[i]), fmt.Sprintf("summaries[%d]", i)); path != "" {
			return errors.New(path + " does not follow from the runs: restore the file")
		}
	}
	return nil
}

// difference returns the JSON path of the first stored field that differs, or "".
func difference(a, b reflect.Value, path string) string {
	switch a.Kind() {
	case reflect.Struct:
		return structDifference(a, b, path)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return unless(a.IsNil() == b.IsNil(), path)
		}
		return difference(a.Elem(), b.Elem(), path)
	case reflect.Slice:
		if a.Len() != b.Len() {
			return path
		}
		for i := range a.Len() {
			if p := difference(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i)); p != "" {
				return p
			}
		}
		return ""
	case reflect.Float64:
		x, y := a.Float(), b.Float()
		return unless(math.Abs(x-y) <= sameFigure*max(math.Abs(x), math.Abs(y)), path)
	default:
		return unless(reflect.DeepEqual(a.Interface(), b.Interface()), path)
	}
}

func structDifference(a, b reflect.Value, path string) string {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		at := path
		if name != "" {
			at += "." + name
		}
		if p := difference(a.Field(i), b.Field(i), at); p != "" {
			return p
		}
	}
	return ""
}

// unless is path, or nothing if ok.
func unless(ok bool, path string) string {
	if ok {
		return ""
	}
	return path
}
