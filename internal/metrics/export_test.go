package metrics

// All are the metrics that a measurement serves.
func All() (out []Metric) {
	for _, m := range measured() {
		out = append(out, m.Metric)
	}
	return out
}
