package results

// Source is one of several processes that drove a load together.
type Source struct {
	// Name tells it from the others, e.g. "2/3".
	Name string `json:"name"`
	// Provenance of its runs.
	Provenance Provenance `json:"provenance"`
	// Runs that it made.
	Runs int `json:"runs"`
}
