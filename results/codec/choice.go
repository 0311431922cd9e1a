package codec

import (
	"bytes"
	"encoding/json"

	"github.com/quotabench/quotabench/results"
)

// ChoiceJSON renders a choice. It fits [schema.Choice].
func ChoiceJSON(c *results.Choice) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	if err := checkAgainst(compiled.choice, b.Bytes()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
