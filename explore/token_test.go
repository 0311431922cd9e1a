package explore

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/quota"

	_ "github.com/quotabench/quotabench/strategies/all"
)

// full is a ticket with everything in it.
var full = ticket{
	Strategy: "lua-reserve", Policy: "tenant-uploads", Second: "9 MB per fixed 1s", Limit: 3, Used: 1, Clients: 2, Instances: 2,
	Scripts: []string{"take=2,refund", "take"},
	Skew:    []time.Duration{0, 2 * time.Second}, Seed: 7, Faults: []quota.Fault{quota.FaultCrash, quota.FaultClock},
	Times: 2, Ticks: 5, Passes: true, Learns: true, From: time.Millisecond, Jobs: -1, Asks: 3, Property: Leak,
	Own:  &ownPolicyTicket{Unit: "calls", Kind: quota.Fixed, Length: time.Minute, Location: "Europe/Berlin"},
	Path: "s0 s1 k0 t1 l1 r1 i0 o1 p0 ea+key%3A1",
}

func TestTokenHoldsEverything(t *testing.T) {
	text := full.encode()
	got, path, err := parseToken(" " + text + "\n")
	if err != nil || !reflect.DeepEqual(got, full) {
		t.Fatalf("%+v, %v", got, err)
	}
	if last := path[len(path)-1]; len(path) != 10 || last.Kind != engine.EvictKey || last.Key != "a key:1" {
		t.Errorf("path %+v", path)
	}
	v := reflect.ValueOf(full)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
}

// What is cut short, mistyped or lengthened is refused, and never taken for the
// schedule of another token.
func TestDamagedTokensAreRefused(t *testing.T) {
	text := full.encode()
	damaged := []string{"", "qb2.", "qb1." + text[4:], text + "A", text + "AAAA", text + text[4:]}
	for i := range text {
		damaged = append(damaged, text[:i])
		for _, c := range "Aa0_" {
			if byte(c) != text[i] {
				damaged = append(damaged, text[:i]+string(c)+text[i+1:])
			}
		}
	}
	for _, d := range damaged {
		if got, _, err := parseToken(d); !errors.Is(err, ErrToken) {
			t.Errorf("%q is %+v, %v", d, got, err)
		}
	}
}

// seal makes a token of any text, with a sum that is right.
func seal(plain []byte) string {
	var b bytes.Buffer
	z, _ := flate.NewWriterDict(&b, flate.BestSpeed, []byte(familiar))
	_, _ = z.Write(plain)
	_ = z.Close()
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b.Bytes()))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(sum, b.Bytes()...))
}

// TestCraftedTokens: a token with a right sum that no search has issued is refused as what it is, with no attempt to
// repeat it.
func TestCraftedTokens(t *testing.T) {
	for name, change := range map[string]func(*ticket){
		"unknown policy":   func(c *ticket) { c.Policy = "nonsense" },
		"huge limit":       func(c *ticket) { c.Limit = math.MaxInt64 },
		"huge use":         func(c *ticket) { c.Used = math.MaxInt64 },
		"many clients":     func(c *ticket) { c.Clients = math.MaxInt },
		"many faults":      func(c *ticket) { c.Times = math.MaxInt },
		"many jobs":        func(c *ticket) { c.Jobs = math.MaxInt },
		"many questions":   func(c *ticket) { c.Asks = math.MaxInt },
		"far clocks":       func(c *ticket) { c.Skew = []time.Duration{math.MaxInt64, 0} },
		"unknown fault":    func(c *ticket) { c.Faults = []quota.Fault{"fire"} },
		"a window of none": func(c *ticket) { c.Policy, c.Own = "mine", &ownPolicyTicket{Kind: quota.Fixed} },
		"a file's name": func(c *ticket) {
			c.Policy, c.Own = "mine", &ownPolicyTicket{Kind: quota.Fixed, Length: time.Hour, Location: "../../etc/passwd"}
		},
		"huge request": func(c *ticket) { c.Scripts = []string{"take=9223372036854775807"} },
		"long script":  func(c *ticket) { c.Scripts = []string{strings.Repeat("take,", 20_000) + "take"} },
		"a service":    func(c *ticket) { c.Strategy = "http" },
	} {
		crafted := ticket{Strategy: "check-then-set", Policy: "tenant-uploads", Limit: 1, Clients: 2, Instances: 2,
			Scripts: []string{"take"}, Times: 1, Jobs: 1, Property: Leak, Path: "s0 s1 s0 s1"}
		change(&crafted)
		_, err := Replay(t.Context(), crafted.encode(), Target{})
		if !errors.Is(err, ErrToken) && !errors.As(err, new(*UnfitError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReplayToken decodes tokens: of any text, and of any text that is sealed as
// ours are. What is understood has one form, and can be repeated or is refused.
func FuzzReplayToken(f *testing.F) {
	plain, err := json.Marshal(full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full.encode())
	f.Add(string(plain))
	f.Add(`{"s":"check-then-set","p":"tenant-uploads","l":1,"c":2,"i":2,"a":["take"],"t":1,"j":1,"b":"leak","x":"s0 s1 s0 s1"}`)
	f.Add(`{"s":"decr-expire","p":"link-hits","l":1,"c":2,"i":2,"a":["take"],"f":["clock"],"t":1,"j":1,"b":"ttl","x":"s0 s0 s0 t0 s0 s0"}`)
	f.Add(`{"s":"incr-expire","p":"user-links","l":1,"c":2,"i":1,"a":["take=2","take"],"f":["eviction","outage","retry","lost-reply"],"t":2,"j":1,"b":"drift","x":"s0 s0 r0 l0 s1 o1 eusers%3As"}`)
	f.Add(`{"s":"check-then-set","p":"nonsense","l":1,"c":2,"i":2,"a":["take"],"t":1,"j":1,"b":"leak","x":"s0 s1"}`)
	f.Add(`{"s":"check-then-set","p":"tenant-uploads","l":1,"c":9223372036854775807,"i":2,"a":["take"],"t":1,"j":1,"b":"leak","x":"s0"}`)
	f.Add(strings.Repeat("a", 2*maxToken)) // a bomb once it is packed
	f.Add("qb2.")
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range []string{text, seal([]byte(text))} {
			got, path, err := parseToken(token)
			if err != nil {
				if !errors.Is(err, ErrToken) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("error %q", err)
				}
				continue
			}
			again, same, err := parseToken(got.encode())
			if err != nil || !reflect.DeepEqual(got, again) || !reflect.DeepEqual(path, same) || again.encode() != got.encode() {
				t.Fatalf("%+v is %+v the second time, %v", got, again, err)
			}
			if len(path) > 60 || got.Clients > 4 || strings.HasPrefix(got.Strategy, "three-tier") {
				continue // takes too long
			}
			_, _ = Replay(t.Context(), token, Target{}) // may be refused, and must not panic
		}
	})
}
