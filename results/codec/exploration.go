package codec

import _ "embed"

// ExplorationSchema is the JSON schema of a [results.Exploration].
//
//go:embed exploration.schema.json
var ExplorationSchema []byte
