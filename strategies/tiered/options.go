package tiered

import "github.com/quotabench/quotabench/quota"

// The values of the options, where code depends on them.
const (
	writeBackMode    = "back"
	writeThroughMode = "through"
	writeLiteralMode = "literal"

	downProse   = "prose"
	downUnified = "unified"
	downService = "service"
)

// optionFilter is three-tier's alone; the others are of both strategies.
var optionFilter = quota.Option{
	Name: "filter", Default: "fixed", Values: []string{"fixed", "scalable"},
	Doc: "the Bloom filter keeps the size it was made with (fixed) or grows by layers, as the record's does (scalable)",
}

var options = []quota.Option{
	{
		Name: "write", Default: writeBackMode, Values: []string{writeBackMode, writeThroughMode, writeLiteralMode},
		Doc: "a charge goes to Redis, then by a queue to PostgreSQL (back), to PostgreSQL, then Redis forgets (through), or does all of it, as that listing stands (literal)",
	},
	{
		Name: "names", Default: "schema", Values: []string{"schema", "literal"},
		Doc: "columns and fields have the names of the record's schema (schema) or those that its listings put together (literal), some of which do not exist",
	},
	{
		Name: "charge", Default: "after", Values: []string{"after", "before"},
		Doc: "work that takes time is charged when it is done (after), or on admission, and corrected when it is done (before)",
	},
	{
		Name: "ttl", Default: "refresh", Values: []string{"refresh", "literal"},
		Doc: "with write=back, a charge sets the hash's hour to live anew (refresh, the prose) or leaves it (literal, the listing)",
	},
	{
		Name: "reset", Default: "none", Values: []string{"none", "job"},
		Doc: "nothing begins a new window (none, the record) or a job sets all counts to zero when one has ended (job)",
	},
	{
		Name: "down", Default: downProse, Values: []string{downProse, downUnified, downService},
		Doc: "without Redis PostgreSQL decides, without both all is admitted (prose), or the listing of the unified check (unified) or of the service (service) to the letter",
	},
}

// config is what the options say.
type config struct {
	write string
	down  string
	uses  *[useCount]use
	// chargeFirst makes a failing charge fail its request.
	chargeFirst bool
	refresh     bool
}

func configure(o quota.Options) config {
	c := config{
		write: o["write"], down: o["down"], uses: &schemaUses,
		chargeFirst: o["charge"] == "before", refresh: o["ttl"] == "refresh",
	}
	if o["names"] == "literal" {
		c.uses = &literalUses
	}
	return c
}
