package workloads

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// jsonLines is the shape of one JSON object per line. Names of nested fields have dots between them.
type jsonLines struct{ names []string }

func (j *jsonLines) begin(head []line) bool {
	found := map[string]bool{}
	for _, line := range head {
		var row map[string]any
		if err := json.Unmarshal([]byte(line.text), &row); err == nil {
			addPaths(row, "", found)
		}
	}
	j.names = slices.Sorted(maps.Keys(found))
	return len(found) > 0
}

func (j *jsonLines) fields() []string { return j.names }

func (j *jsonLines) ordered() bool { return false }

func (j *jsonLines) evident() bool { return true }

func (j *jsonLines) isRow(line) bool { return true }

func (j *jsonLines) split(text string) (values, string) {
	row, err := parseObject([]byte(text))
	if err != nil {
		return row, "no JSON object: " + err.Error()
	}
	return row, ""
}

// object is a JSON object whose values are read when they are asked for.
type object map[string]json.RawMessage

func parseObject(text []byte) (row object, err error) {
	err = json.Unmarshal(text, &row)
	return row, err
}

// addPaths adds the names of all values that are no objects.
func addPaths(row map[string]any, prefix string, found map[string]bool) {
	for name, value := range row {
		if inner, nested := value.(map[string]any); nested {
			addPaths(inner, prefix+name+".", found)
			continue
		}
		if path := prefix + name; !strings.ContainsFunc(path, unicode.IsControl) {
			found[path] = true
		}
	}
}

// value follows a path. A name may hold dots itself.
func (o object) value(path string) string {
	if raw, ok := o[path]; ok {
		return scalar(raw)
	}
	for i := range len(path) {
		raw, ok := o[path[:i]]
		if path[i] != '.' || !ok {
			continue
		}
		inner, err := parseObject(raw)
		if err != nil {
			continue
		}
		if text := inner.value(path[i+1:]); text != "" {
			return text
		}
	}
	return ""
}

// scalar is a value as text, or the first value of a list; "" for null and objects. A number keeps its digits.
func scalar(raw json.RawMessage) string {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err == nil && len(list) > 0 {
		raw = list[0]
	}
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err == nil {
			return strings.TrimSpace(text)
		}
	case '[', '{', 'n':
	default:
		return string(raw)
	}
	return ""
}
