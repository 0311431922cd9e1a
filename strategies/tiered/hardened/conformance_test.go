package hardened_test

import (
	"testing"

	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
	_ "github.com/quotabench/quotabench/strategies/tiered/hardened"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) {
	meta, err := strategies.Lookup("three-tier-hardened")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("embedded", func(t *testing.T) { strategytest.Run(t, meta) })
	t.Run("servers", func(t *testing.T) { strategytest.Run(t, meta, strategytest.Servers(t, meta)) })
}
