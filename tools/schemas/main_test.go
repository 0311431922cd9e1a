package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestSchemasAreCurrent(t *testing.T) {
	for _, d := range documents {
		want, err := d.generate()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, d.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s does not follow from the types: run make -C tools schemas", d.file)
		}
	}
}

// TestSchemasSayWhatFieldsAre: every field has a description, and objects take no
// others.
func TestSchemasSayWhatFieldsAre(t *testing.T) {
	fields := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		object, ok := node.(map[string]any)
		if !ok {
			return
		}
		props, _ := object["properties"].(map[string]any)
		if len(props) > 0 && object["additionalProperties"] != false {
			t.Errorf("%s takes any field", at)
		}
		for name, p := range props {
			fields++
			def := p.(map[string]any)
			if alternatives, ok := def["oneOf"].([]any); ok {
				def = alternatives[0].(map[string]any)
			}
			if text, _ := def["description"].(string); len(text) < 5 {
				t.Errorf("%s.%s has no description", at, name)
			}
			walk(at+"."+name, def)
		}
		defs, _ := object["$defs"].(map[string]any)
		for name, d := range defs {
			walk(name, d)
		}
	}
	for _, d := range documents {
		b, err := d.generate()
		if err != nil {
			t.Fatal(err)
		}
		var root any
		if err := json.Unmarshal(b, &root); err != nil {
			t.Fatal(err)
		}
		walk(d.file, root)
	}
	if fields < 200 {
		t.Errorf("only %d fields were found", fields)
	}
}
