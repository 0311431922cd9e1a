package oracle

// denseSubjects are counted by number, all others by name of their number.
const denseSubjects = 1 << 22

// perSubject counts events by subject.
type perSubject struct {
	dense []uint32          // by number
	far   map[uint32]uint32 // of subjects with high numbers
}

// add counts one more event of a subject, and returns how many that makes.
func (c *perSubject) add(subject uint32) uint32 { return c.addAll(subject, 1) }

// addAll is add for n events.
func (c *perSubject) addAll(subject, n uint32) uint32 {
	if subject >= denseSubjects {
		if c.far == nil {
			c.far = map[uint32]uint32{}
		}
		c.far[subject] += n
		return c.far[subject]
	}
	for int(subject) >= len(c.dense) {
		c.dense = append(c.dense, 0)
	}
	c.dense[subject] += n
	return c.dense[subject]
}
