package lease

import (
	"testing"

	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestConformance(t *testing.T) { strategytest.Run(t, testkit.Strategy(t, "lease").Meta) }
