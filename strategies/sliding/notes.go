package sliding

import (
	_ "embed"

	"github.com/quotabench/quotabench/strategies"
)

//go:embed notes.md
var markdown string

var notes = strategies.ReadNotes(markdown)
