package redis_test

import (
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storetest"
	_ "github.com/quotabench/quotabench/stores/container" // for tests on containers
)

func TestMain(m *testing.M) { storetest.Main(m) }
