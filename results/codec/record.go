package codec

import (
	"bytes"
	"encoding/json"

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

// DecodeRecord is [ReadRecord] for bytes at hand.
func DecodeRecord(b []byte) (Record, error) {
	switch kindOf(b) {
	case "exploration":
		x, err := DecodeExploration(b)
		if err != nil {
			return Record{}, err
		}
		return Record{Exploration: &x}, nil
	case "series":
		s, err := DecodeSeries(b)
		if err != nil {
			return Record{}, err
		}
		return Record{Series: s}, nil
	default:
		f, err := Decode(b)
		if err != nil {
			return Record{}, err
		}
		return Record{File: &f}, nil
	}
}

// kindOf looks for the first name of the outermost object that tells what a record
// is. What cannot be told is left to the decoder of results.
func kindOf(b []byte) string {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		switch name {
		case "kind":
			kind, _ := d.Token() // what cannot be read is no kind
			text, _ := kind.(string)
			return text
		case "series":
			return "series"
		case "searches", "censuses", "replays":
			return "exploration"
		case "schema": // which all have
			if t, err := d.Token(); err != nil || t == json.Delim('{') || t == json.Delim('[') {
				return ""
			}
		default:
			return ""
		}
	}
	return ""
}
