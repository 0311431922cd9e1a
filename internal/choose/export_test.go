package choose

import "time"

// Brisk makes runs of that length, too short for figures of speed.
func Brisk(c Config, length time.Duration) Config {
	c.brisk = length
	return c
}
