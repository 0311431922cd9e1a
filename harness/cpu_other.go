//go:build !unix

package harness

import "time"

// processCPU is not known here.
func processCPU() time.Duration { return 0 }
