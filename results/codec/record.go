package codec

import (
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
)

// Record is one of the files that run, sim and explore leave. One of its fields is
// set.
type Record struct {
	// File is the record of runs, measured or simulated.
	File *results.File
	// Series are how simulated runs developed.
	Series []results.Series
	// Exploration is what was found by searches of schedules.
	Exploration *results.Exploration
}

// ReadRecord loads a record of any kind. Everything that is not of this version's
// form is an error of one line that names the path.
func ReadRecord(path string) (Record, error) {
	return read(path, DecodeRecord)
}

// DecodeRecord is [ReadRecord] for bytes at hand. What is of no kind that is known is left to the decoder of results.
func DecodeRecord(data []byte) (Record, error) {
	return shapedAs(data, func(d document) (record Record, err error) {
		switch {
		case d.top["kind"] == "exploration":
			record.Exploration, err = pointerTo(decodeExploration(d))
		case d.top["series"] != nil:
			record.Series, err = decodeSeries(d)
		default:
			record.File, err = pointerTo(decodeFile(d))
		}
		return record, err
	})
}

// pointerTo leads to a record that was decoded; it is nil after an error.
func pointerTo[T any](record T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return &record, nil
}

// ComparisonJSON renders a comparison as indented JSON that ends in a newline.
func ComparisonJSON(comparison *compare.Comparison) ([]byte, error) {
	data, err := indented(comparison)
	return data, format.Wrapf(err, "encode the comparison")
}
