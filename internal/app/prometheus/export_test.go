package prometheus

import "slices"

// All are the metrics that a measurement serves.
func All() []Metric {
	return slices.DeleteFunc(slices.Clone(declared()), func(m Metric) bool { return m.Help == "" })
}
