package codec

import (
	"github.com/quotabench/quotabench/internal/compare"
	"github.com/quotabench/quotabench/internal/format"
)

// ComparisonJSON renders a comparison as indented JSON that ends in a newline.
func ComparisonJSON(c *compare.Comparison) ([]byte, error) {
	b, err := indented(c)
	return b, format.Wrapf(err, "encode the comparison")
}
