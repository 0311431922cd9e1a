package etcd_test

import (
	"testing"

	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
