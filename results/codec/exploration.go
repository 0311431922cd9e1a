package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/quotabench/quotabench/results"
)

// ExplorationJSON renders what was explored as it is stored: indented JSON that
// ends in a newline, the same bytes for the same record.
func ExplorationJSON(x *results.Exploration) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(x); err != nil {
		return nil, fmt.Errorf("encode the exploration: %w", err)
	}
	return b.Bytes(), nil
}

// ReadExploration loads a record that [ExplorationJSON] rendered. Everything that is
// not of this version's form is an error of one line that begins with the path.
func ReadExploration(path string) (results.Exploration, error) {
	in, err := os.Open(path)
	if err != nil {
		return results.Exploration{}, err // names the path already
	}
	defer func() { _ = in.Close() }() // nothing was written
	b, err := readAll(in, maxFile)
	if err != nil {
		return results.Exploration{}, fmt.Errorf("read %s: %w", path, err)
	}
	var x results.Exploration
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return results.Exploration{}, fmt.Errorf("%s: %w", path, jsonError(b, err))
	}
	if x.Schema != results.ExplorationSchema || x.Kind != "exploration" {
		return results.Exploration{}, fmt.Errorf("%s: schema %d, kind %q: this version reads schema %d of an exploration: explore again", path, x.Schema, x.Kind, results.ExplorationSchema)
	}
	return x, nil
}
