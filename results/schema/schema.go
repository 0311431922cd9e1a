// Package schema holds the JSON Schemas (2020-12) of what quotabench writes. They
// are generated from the Go types of the records: after a change of these run
// "go generate ./results/schema/...".
package schema

import _ "embed"

// Results is the schema of results.json.
//
//go:embed results.schema.json
var Results []byte

// Series is the schema of series.json.
//
//go:embed series.schema.json
var Series []byte

// Exploration is the schema of exploration.json.
//
//go:embed exploration.schema.json
var Exploration []byte

// Choice is the schema of choice.json.
//
//go:embed choice.schema.json
var Choice []byte
