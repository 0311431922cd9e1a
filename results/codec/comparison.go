package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/quotabench/quotabench/internal/compare"
)

// ComparisonJSON renders a comparison as indented JSON that ends in a newline.
func ComparisonJSON(c *compare.Comparison) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("encode the comparison: %w", err)
	}
	return b.Bytes(), nil
}
