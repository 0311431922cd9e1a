package stores

import "context"

// Place says where a store runs, seen from this process.
type Place string

// The places.
const (
	InProcess   Place = "in-process" // embedded: it has no processes of its own
	StartedHere Place = "started"    // a server on this machine, started for this process
	OnThisHost  Place = "host"       // a server on this machine that was running already
	Elsewhere   Place = "elsewhere"  // on another machine, or unknown
)

// Placed is a [Store] that knows where it runs. A store need not be one: it is then
// taken to be [Elsewhere]. The store with place [StartedHere] has processes and can
// be confined; the methods of any other return errors.
type Placed interface {
	// Place is where the store runs.
	Place() Place
	// Processes are the numbers of the server's processes at this moment, parents
	// before their children.
	Processes(ctx context.Context) ([]int, error)
	// Confine lets the server run on the given cores alone, by the system's numbers of
	// logical processors, with processes that it starts later. A wider set takes an
	// earlier one back.
	Confine(ctx context.Context, cores []int) error
}

// PlaceOf returns where a store runs.
func PlaceOf(s Store) Place {
	if p, ok := s.(Placed); ok {
		return p.Place()
	}
	return Elsewhere
}
