// Package schema holds the JSON Schemas (2020-12) of what quotabench writes. They
// are generated from the Go types of the records: after a change of these run
// "make -C tools schemas".
package schema

import _ "embed"

// The schemas, one for each kind of record.
var (
	// Results is the schema of results.json.
	//
	//go:embed results.schema.json
	Results []byte

	// Series is the schema of series.json.
	//
	//go:embed series.schema.json
	Series []byte

	// Exploration is the schema of exploration.json.
	//
	//go:embed exploration.schema.json
	Exploration []byte
)
