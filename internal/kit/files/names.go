package files

// HistoryExt ends the name of a history file.
const HistoryExt = ".history"

// The names of the records.
const (
	ResultsName     = "results.json"
	ExplorationName = "exploration.json"
	// TextName is the report as text.
	TextName = "report.txt"
	// ComparisonName is what run --against found.
	ComparisonName = "comparison.json"
	// SeriesName is how simulations developed.
	SeriesName = "series.json"
	// HTMLName is the page of a record.
	HTMLName = "report.html"
)
