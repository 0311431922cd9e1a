package codes

// The classes of stores.
const (
	ClassRedis = "redis"
	ClassOther = "other"
	ClassSQL   = "sql"
)
