// Package all registers every strategy of this module. It is imported for that
// effect alone:
//
//	import _ "github.com/quotabench/quotabench/strategies/all"
package all

import (
	_ "github.com/quotabench/quotabench/strategies/baseline"
	_ "github.com/quotabench/quotabench/strategies/checkafter"
	_ "github.com/quotabench/quotabench/strategies/combine"
	_ "github.com/quotabench/quotabench/strategies/consensus"
	_ "github.com/quotabench/quotabench/strategies/edge"
	_ "github.com/quotabench/quotabench/strategies/lease"
	_ "github.com/quotabench/quotabench/strategies/localsync"
	_ "github.com/quotabench/quotabench/strategies/postgres"
	_ "github.com/quotabench/quotabench/strategies/replicated"
	_ "github.com/quotabench/quotabench/strategies/reserve"
	_ "github.com/quotabench/quotabench/strategies/service"
	_ "github.com/quotabench/quotabench/strategies/sliding"
	_ "github.com/quotabench/quotabench/strategies/tiered"
	_ "github.com/quotabench/quotabench/strategies/tiered/hardened"
	_ "github.com/quotabench/quotabench/strategies/ttlcounter"
	_ "github.com/quotabench/quotabench/strategies/window"
	_ "github.com/quotabench/quotabench/strategies/windowlog"
)
