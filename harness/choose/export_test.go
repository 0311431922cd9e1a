package choose

// Brisk makes runs too short for figures of speed.
func Brisk(c Config) Config {
	c.brisk = true
	return c
}
