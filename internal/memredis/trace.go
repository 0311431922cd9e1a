package memredis

// Keys is a set of keys by a hash of their names. It may seem to hold keys that it does
// not hold.
type Keys [2]uint64

// allKeys holds every key.
var allKeys = Keys{^uint64(0), ^uint64(0)}

func (k *Keys) add(name string) {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h ^= h >> 29
	h *= 0x9E3779B97F4A7C15
	k[h>>63] |= 1 << (h >> 57 & 63)
}

// Trace is what commands have read and changed.
type Trace struct {
	// Read keys are those that were looked for, there or not, and Written those that
	// may have changed.
	Read, Written Keys
	// Scripts is set if it mattered which scripts are loaded, and Loaded if that has
	// changed.
	Scripts, Loaded bool

	// inPlace is set while a command may change keys that it only seems to read.
	inPlace bool
}

// Trace has commands add to a trace what they read and change, until it is called with nil.
func (t *Table) Trace(into *Trace) { t.trace = into }

// wrote notes a change of a key.
func (t *Table) wrote(key string) {
	if t.trace != nil {
		t.trace.Wrote(key)
	}
	t.touch(key)
}

// Wrote notes a key that is changed from outside.
func (r *Trace) Wrote(key string) { r.Written.add(key) }

func (r *Trace) looked(key string) {
	r.Read.add(key)
	if r.inPlace {
		r.Written.add(key)
	}
}

// carries notes that a command begins.
func (r *Trace) carries(c *command) {
	r.inPlace = !c.has(noted)
	r.Scripts = r.Scripts || c.has(unscripted)
	switch c.name {
	case "dbsize":
		r.Read = allKeys
	case "flushall", "flushdb":
		r.Written = allKeys
	}
}
