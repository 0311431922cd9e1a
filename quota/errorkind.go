package quota

// ErrorKind says what kept a request from being decided.
type ErrorKind string

// The kinds.
const (
	// ErrorContention: others changed the same data in the meantime, too often or at
	// the wrong moment, e.g. a conflict of versions or a lock that could not be had.
	ErrorContention ErrorKind = "contention"
	// ErrorTimeout: there was no answer in the time that the caller, the strategy, its
	// client or the store allows.
	ErrorTimeout ErrorKind = "time-out"
	// ErrorStore: the store was not there, or would not do what any client may ask of
	// it, e.g. a connection that was refused, a server that is read-only or full.
	ErrorStore ErrorKind = "store"
	// ErrorOther: all else, e.g. a mistake of the strategy or of this program.
	ErrorOther ErrorKind = "other"
)
