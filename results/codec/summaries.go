package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// sameFigure is how far two computations of one figure may differ: processors
// round sums of products differently.
const sameFigure = 1e-9

// checkSummaries replaces the summaries of a file by those that follow from its
// runs, and fails if the file says something else.
func checkSummaries(file *results.File) error {
	stored := file.Summaries
	file.Summaries = results.Summarise(file.Runs)
	*file = complete(*file)
	if err := checkFinite(file); err != nil {
		return err
	}
	if len(stored) != len(file.Summaries) {
		return fmt.Errorf("summaries: there are %d, and %d follow from the runs: measure again, or restore the file",
			len(stored),
			len(file.Summaries))
	}
	for i := range stored {
		if path := firstWrong(reflect.ValueOf(stored[i]), reflect.ValueOf(file.Summaries[i]), fmt.Sprintf("summaries[%d]", i),
			differs); path != "" {
			return errors.New(path + " does not follow from the runs: restore the file")
		}
	}
	return nil
}

// firstWrong is the JSON path of the first value of a that is wrong next to that of b, or "".
func firstWrong(a, b reflect.Value, path string, wrong func(value, b reflect.Value) bool) string {
	switch {
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" || !field.IsExported() {
				continue
			}
			if text := firstWrong(a.Field(i), b.Field(i), format.Join(".", path, name), wrong); text != "" {
				return text
			}
		}
		return ""
	case a.Kind() == reflect.Slice && a.Len() == b.Len():
		for i := range a.Len() {
			if text := firstWrong(a.Index(i), b.Index(i), path+"["+strconv.Itoa(i)+"]", wrong); text != "" {
				return text
			}
		}
		return ""
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		return firstWrong(a.Elem(), b.Elem(), path, wrong)
	case wrong(a, b):
		return path
	}
	return ""
}

func differs(a, b reflect.Value) bool {
	if a.CanFloat() {
		return math.Abs(a.Float()-b.Float()) > sameFigure*max(math.Abs(a.Float()), math.Abs(b.Float()))
	}
	return !reflect.DeepEqual(a.Interface(), b.Interface())
}

// checkFinite names the first NaN or infinity of a file.
func checkFinite(file *results.File) error {
	value := reflect.ValueOf(*file)
	infinite := func(x, _ reflect.Value) bool {
		return x.CanFloat() && (math.IsNaN(x.Float()) || math.IsInf(x.Float(), 0))
	}
	if path := firstWrong(value, value, "", infinite); path != "" {
		return fmt.Errorf("%s is not a finite number", path)
	}
	return nil
}
