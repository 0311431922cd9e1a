package lease

import (
	"testing"

	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestConformance(t *testing.T) { strategytest.Run(t, lookup(t)) }
