package oracle

// denseSubjects are counted by number, all others by name of their number.
const denseSubjects = 1 << 22

// perSubject counts events by subject.
type perSubject struct {
	dense []uint32          // by number
	far   map[uint32]uint32 // of subjects with high numbers
}

// add counts one more event of a subject, and returns how many that makes.
func (c *perSubject) add(subject uint32) uint32 {
	if subject >= denseSubjects {
		if c.far == nil {
			c.far = map[uint32]uint32{}
		}
		c.far[subject]++
		return c.far[subject]
	}
	for int(subject) >= len(c.dense) {
		c.dense = append(c.dense, 0)
	}
	c.dense[subject]++
	return c.dense[subject]
}
