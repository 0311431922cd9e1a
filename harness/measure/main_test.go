package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/monitor"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) {
	monitor.Timeout = time.Minute // a store on a busy machine answers late, and has not failed
	storetest.Main(m)
}
