package redis_test

import (
	"testing"

	_ "github.com/quotabench/quotabench/stores/container" // for tests on containers
	"github.com/quotabench/quotabench/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
