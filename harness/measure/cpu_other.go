//go:build !unix

package measure

import "time"

// processCPU is not known here.
func processCPU() time.Duration { return 0 }
