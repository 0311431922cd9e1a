package measure

import (
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/looks"
	"github.com/quotabench/quotabench/stores/storetest"
)

func TestMain(m *testing.M) {
	looks.Timeout = time.Minute // a store on a busy machine answers late, and has not failed
	storetest.Main(m)
}
