package results

// Placement says on which cores a run took place.
type Placement struct {
	// Mode is "shared" (the system places harness and stores as it likes), "apart"
	// (harness and stores have cores of their own), "beside" (the harness leaves a
	// core to a server that was running already) or "given" (as the user listed them).
	Mode string `json:"mode" jsonschema:"enum=shared,enum=apart,enum=beside,enum=given"`
	// Harness lists the cores that the harness was confined to, e.g. "0-1,3"; empty
	// if it was not.
	Harness string `json:"harness,omitempty"`
	// Stores lists the cores that all stores started for the measurement share; empty
	// if they were not confined.
	Stores string `json:"stores,omitempty"`
	// Procs is how many threads of the harness run Go code at a time (GOMAXPROCS).
	Procs int `json:"procs"`
	// Reason is one line: what led to this placement.
	Reason string `json:"reason"`
}
