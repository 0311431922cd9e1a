package zookeeper_test

import (
	"testing"

	_ "github.com/quotabench/quotabench/full/stores/zookeeper"
	_ "github.com/quotabench/quotabench/full/strategies/zookeeper"
	"github.com/quotabench/quotabench/stores/storetest"
	"github.com/quotabench/quotabench/strategies/consensus"
	"github.com/quotabench/quotabench/strategies/strategytest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) { strategytest.Serve(t, consensus.ZooKeeperCounter).Run(t) }

func TestRetriesAreCounted(t *testing.T) {
	s, _, _ := strategytest.Serve(t, consensus.ZooKeeperCounter).Open(t, nil)
	strategytest.CountsRetries(t, s)
}
