package zookeeper_test

import (
	"testing"

	"github.com/quotabench/quotabench/full/internal/served"
	_ "github.com/quotabench/quotabench/full/stores/zookeeper"
	_ "github.com/quotabench/quotabench/full/strategies/zookeeper"
	"github.com/quotabench/quotabench/internal/codes"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestConformance(t *testing.T) { served.Start(t, codes.ZooKeeperCounter).Run(t) }

func TestRetriesAreCounted(t *testing.T) {
	s, _, _ := served.Start(t, codes.ZooKeeperCounter).Open(t, nil)
	served.CountsRetries(t, s)
}
