package postgres

import _ "embed"

// The tables that sql/schema.sql and sql/window_schema.sql make.
const (
	tableUsage   = "quota_usage"
	tableWindows = "quota_windows"
)

var (
	// Of pg-check.

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
	//go:embed sql/set_limit.sql
	sqlSetLimit string
	//go:embed sql/provision.sql
	sqlProvision string

	// Of the strategies with a row per window.

	//go:embed sql/window_schema.sql
	sqlWindowSchema string
	//go:embed sql/window_charge.sql
	sqlWindowCharge string
	//go:embed sql/window_first_use.sql
	sqlWindowFirstUse string
	//go:embed sql/window_refund.sql
	sqlWindowRefund string
	//go:embed sql/window_used.sql
	sqlWindowUsed string
	//go:embed sql/window_provision.sql
	sqlWindowProvision string

	// Of pg-row-lock.

	//go:embed sql/row_lock.sql
	sqlRowLock string
	//go:embed sql/row_charge.sql
	sqlRowCharge string

	// Of pg-optimistic.

	//go:embed sql/version_read.sql
	sqlVersionRead string
	//go:embed sql/version_charge.sql
	sqlVersionCharge string
)
