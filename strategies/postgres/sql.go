package postgres

import _ "embed"

// tableUsage is the table that sql/schema.sql makes.
const tableUsage = "quota_usage"

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/remaining.sql
	sqlRemaining string
	//go:embed sql/charge.sql
	sqlCharge string
	//go:embed sql/first_use.sql
	sqlFirstUse string
	//go:embed sql/used.sql
	sqlUsed string
	//go:embed sql/provision.sql
	sqlProvision string
)
