package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

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
