package stat

import (
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []int64
		want float64
	}{{nil, 0}, {[]int64{7}, 7}, {[]int64{9, 2}, 5.5}, {[]int64{9, 1, 4}, 4}, {[]int64{8, 0, 3, 100}, 5.5}} {
		if got := Median(c.v); got != c.want {
			t.Errorf("the median of %v is %g, want %g", c.v, got, c.want)
		}
	}
}
