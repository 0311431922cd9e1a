// Package schema holds the JSON Schemas (2020-12) of what quotabench writes. They
// are generated from the Go types of the records: after a change of these run
// "make -C tools schemas".
package schema

import "embed"

// Files are the schemas, one for each kind of record, e.g. results.schema.json.
//
//go:embed *.schema.json
var Files embed.FS
