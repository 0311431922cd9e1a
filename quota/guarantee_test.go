package quota_test

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// A limiter in memory promises the limit on one instance, whatever the kind of its windows, and of buckets nothing on
// several.
func TestPerInstance(t *testing.T) {
	for _, k := range quota.Kinds() {
		of := slices.DeleteFunc(quota.PerInstance(), func(c quota.Clause) bool { return !c.Applies(k) })
		if len(of) != 1 {
			t.Errorf("%s: %d clauses", k, len(of))
			continue
		}
		p := quota.Params{Limit: 10, Instances: 1, Offered: 1_000}
		one := of[0].Bound(p)
		p.Instances = 2
		want, special := map[quota.Kind]int64{quota.Bucket: p.Offered, quota.FirstRequest: 3 * p.Limit}[k]
		if !special {
			want = p.Limit
		}
		if several := of[0].Bound(p); one != 0 || several != want {
			t.Errorf("%s: bounds %d and %d, want 0 and %d", k, one, several, want)
		}
	}
}
