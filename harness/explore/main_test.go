package explore_test

import (
	"testing"

	"github.com/quotabench/quotabench/stores/storetest"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func TestMain(m *testing.M) { storetest.Main(m) }
