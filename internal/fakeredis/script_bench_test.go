package fakeredis

import "testing"

// BenchmarkScript is a script of the size that strategies have, without a client
// around it.
func BenchmarkScript(b *testing.B) {
	t := New()
	defer t.Close()
	s, err := t.load(`
local used = tonumber(redis.call('GET', KEYS[1]) or 0)
if used + tonumber(ARGV[1]) > tonumber(ARGV[2]) then return {0, used} end
return {1, redis.call('INCRBY', KEYS[1], ARGV[1])}`)
	if err != nil {
		b.Fatal(err)
	}
	args := []string{"evalsha", s.sha, "1", "n", "1", "1099511627776"}
	b.ReportAllocs()
	for b.Loop() {
		if r := t.Do(args); r.Kind != Array {
			b.Fatal(r)
		}
	}
}
