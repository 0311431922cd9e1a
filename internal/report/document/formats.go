package document

// Formats of comparisons.
const (
	// GitHub is the format of annotations for GitHub Actions.
	GitHub = "github"
	// JSON is the format of all that was compared.
	JSON = "json"
	// Markdown is the format of tables for pages and job summaries.
	Markdown = "markdown"
)
