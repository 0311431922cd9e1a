package fakeredis

import (
	"math"
	"strconv"
)

// Table is the keys of one server. It is used from one goroutine at a time.
type Table struct {
	now  int64 // nanoseconds since 1970
	keys map[string]*entry
	// last are found or made last, the latest first: callers often turn to a key several
	// times in a row, or to two in turns.
	last [2]*entry
	due  deadlines
	// mortal is how many keys have a deadline.
	mortal int64
	// spare are entries that no key has any more.
	spare []*entry

	machine *machine           // nil before the first script
	scripts map[string]*script // compiled, by digest
	sources map[string]*script // the same by their text, since a digest takes as long as a short script
	// kept is set once Reset unloads scripts, runs counts those Resets, and fresh are
	// what was loaded since the last of them.
	kept    bool
	runs    uint64
	flushed uint64 // the last run in which all were unloaded
	fresh   []string

	args   []string // of the client's command, which no command keeps
	sorted []string // fields of the hash that was listed last

	// Replicas is how many replicas a model of them has: each has every write at once,
	// as WAIT reports.
	Replicas int64
	// Expired, if not nil, is told of every key that time removes.
	Expired func(key string)
	// Extended counts the times that a key's time to live was made longer, or taken away.
	Extended int64
	unknown  string
	trace    *Touched // nil for none

	// Watch has WATCH carried out. Without it, a table lacks the command: what a connection
	// watches is in no [Touched] and in no [Table.Copy].
	Watch    bool
	watchers map[string][]*session
}

var _ Redis = (*Table)(nil)

// New makes an empty table whose clock stands at 1970.
func New() *Table {
	return &Table{keys: map[string]*entry{}, scripts: map[string]*script{}, sources: map[string]*script{}, runs: 1}
}

// Close releases the Lua state.
func (t *Table) Close() {
	if t.machine != nil {
		t.machine.lua.Close()
		t.machine = nil
	}
}

// SetNow implements [Redis].
func (t *Table) SetNow(unixNano int64) {
	if unixNano <= t.now {
		return
	}
	t.now = unixNano
	t.expire()
}

// Len implements [Redis].
func (t *Table) Len() int { return len(t.keys) }

// WithoutTTL implements [Redis].
func (t *Table) WithoutTTL() int64 { return int64(len(t.keys)) - t.mortal }

// Unknown implements [Redis].
func (t *Table) Unknown() string { return t.unknown }

func (t *Table) ms() int64 { return t.now / 1e6 }

// kind of a key's value.
type kind uint8

const (
	kindString kind = iota
	kindHash
	kindSet
	kindZset
)

func (k kind) String() string { return [...]string{"string", "hash", "set", "zset"}[k] }

// entry is one key.
type entry struct {
	key      string
	text     value
	fields   dict[value]
	members  *dict[struct{}] // of sets
	sorted   *zset           // of sorted sets
	deadline int64           // milliseconds since 1970, 0 for none
	phase    int64           // nanoseconds into that millisecond at which the time to live is over
	queued   int64           // when the deadline's queue will look at the key, 0 for never
	kind     kind
	removed  bool
}

// value is a string, kept as a number if it is one: counters are read and
// written far more often than they are shown.
type value struct {
	text    string
	number  int64
	numeric bool
}

func numeric(n int64) value { return value{number: n, numeric: true} }

// valueOf is what a text is kept as.
func valueOf(text string) value {
	if n, ok := parseInt(text); ok {
		return numeric(n)
	}
	return value{text: text}
}
func (v value) String() string {
	if v.numeric {
		return strconv.FormatInt(v.number, 10)
	}
	return v.text
}

// int is the value as Redis takes it for a number.
func (v value) int() (int64, bool) {
	if v.numeric {
		return v.number, true
	}
	return parseInt(v.text)
}

// parseInt is Redis' idea of a whole number: no plus sign, no leading zeros, no
// spaces, no minus zero.
func parseInt(text string) (int64, bool) {
	switch {
	case text == "" || len(text) > 20 || text[0] == '+':
		return 0, false
	case text[0] == '0':
		return 0, text == "0"
	case text[0] == '-' && (len(text) == 1 || text[1] == '0'):
		return 0, false
	}
	if len(text) < 16 {
		return parseShort(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// parseShort is parseInt of less than 16 bytes.
func parseShort(text string) (n int64, ok bool) {
	digits := text
	if text != "" && text[0] == '-' {
		digits = text[1:]
	}
	if digits == "" || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int64(d)
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// add reports false if the sum does not fit.
func add(a, b int64) (int64, bool) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, false
	}
	return a + b, true
}

// get returns the key, or nil.
func (t *Table) get(key string) *entry {
	if t.trace != nil {
		t.trace.looked(key)
	}
	if entry := t.last[0]; entry != nil && entry.key == key && !entry.removed {
		return entry
	}
	e := t.last[1]
	if e == nil || e.key != key || e.removed {
		e = t.keys[key]
		if e == nil {
			return nil
		}
	}
	t.last[0], t.last[1] = e, t.last[0]
	return e
}

// find returns the key of the kind, or nil; ok is false if it is of another.
func (t *Table) find(key string, k kind) (e *entry, ok bool) {
	e = t.get(key)
	return e, e == nil || e.kind == k
}

func (t *Table) create(key string, k kind) *entry {
	t.wrote(key)
	e := t.blank()
	e.key = key
	e.kind = k
	switch k {
	case kindSet:
		e.members = &dict[struct{}]{}
	case kindZset:
		e.sorted = &zset{scores: map[string]float64{}}
	}
	t.keys[key] = e
	t.last[0], t.last[1] = e, t.last[0]
	return e
}

// blank is an entry of an earlier run, or a new one.
func (t *Table) blank() *entry {
	n := len(t.spare)
	if n == 0 {
		return &entry{}
	}
	e := t.spare[n-1]
	t.spare = t.spare[:n-1]
	*e = entry{}
	return e
}

func (t *Table) remove(e *entry) {
	t.wrote(e.key)
	e.removed = true
	delete(t.keys, e.key)
	if e.deadline != 0 {
		t.mortal--
	}
}

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

// Touched is what commands have read and changed.
type Touched struct {
	// Read keys are those that were looked for, there or not, and Written those that
	// may have changed.
	Read, Written Keys
	// Scripts is set if it mattered which scripts are loaded, and Loaded if that has
	// changed.
	Scripts, Loaded bool

	// inPlace is set while a command may change keys that it only seems to read.
	inPlace bool
}

// Trace has commands add what they read and change, until it is called with nil.
func (t *Table) Trace(into *Touched) { t.trace = into }

// wrote notes a change of a key.
func (t *Table) wrote(key string) {
	if t.trace != nil {
		t.trace.Wrote(key)
	}
	t.touch(key)
}

// Wrote notes a key that is changed from outside.
func (r *Touched) Wrote(key string) { r.Written.add(key) }

func (r *Touched) looked(key string) {
	r.Read.add(key)
	if r.inPlace {
		r.Written.add(key)
	}
}

// carries notes that a command begins.
func (r *Touched) carries(c *command) {
	r.inPlace = !c.has(noted)
	r.Scripts = r.Scripts || c.has(unscripted)
	switch c.name {
	case "dbsize":
		r.Read = allKeys
	case "flushall", "flushdb":
		r.Written = allKeys
	}
}
