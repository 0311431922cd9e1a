package explore

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// tokenPrefix tells tokens apart from anything else, and versions from each other.
const tokenPrefix = "qb2."

// maxToken bounds what a token can make us read.
const maxToken = 1 << 20

// ticket is what a token holds: everything that a schedule depends on.
type ticket struct {
	Strategy string `json:"s"`
	Policy   string `json:"p"`
	// Own is the policy itself if it is not a registered one.
	Own       *ownPolicyTicket `json:"o,omitempty"`
	Second    string           `json:"d,omitempty"` // the text of the second window
	Limit     int64            `json:"l"`
	Used      int64            `json:"u,omitempty"`
	Clients   int              `json:"c"`
	Instances int              `json:"i"`
	Scripts   []string         `json:"a"`
	Skew      []time.Duration  `json:"k,omitempty"`
	Seed      uint64           `json:"r,omitempty"`
	Faults    []quota.Fault    `json:"f,omitempty"`
	Times     int              `json:"t"`
	Ticks     int              `json:"e,omitempty"` // 0 for once more than Times
	Passes    bool             `json:"m,omitempty"`
	Learns    bool             `json:"w,omitempty"`
	From      time.Duration    `json:"n,omitempty"`
	Jobs      int              `json:"j"`
	Asks      int              `json:"q,omitempty"` // 0 for the default, negative for none
	Property  Property         `json:"b"`
	Path      string           `json:"x"`
}

// familiar is what most tickets are made of: the compressor refers to it, so
// tokens stay short. To change it is to change the version in [tokenPrefix].
const familiar = `","f":["crash","lost-reply","retry","clock","eviction","outage"],"b":"guarantee","b":"false-reject","b":"drift",` +
	`"b":"ttl","b":"stranded","b":"negative","b":"stuck"commit,refund","take"],"a":["take,refund","u":,"k":,"r":` +
	`{"s":"three-tier:redis-hash:lua-reserve:incr-expire:check-then-set",` +
	`"p":"user-links","p":"link-hits","p":"agent-api","p":"tenant-uploads",` +
	`"l":1,"c":3,"i":3,"a":["take"],"l":1,"c":2,"i":2,"a":["take"],"t":1,"j":1,"b":"leak","x":"s0 s1 s0 s1 s2 s1 s0 s2`

// tokenOf is the token of a schedule that breaks a property.
func tokenOf(sel strategies.Selection, cfg *Config, path []engine.Choice, property Property) string {
	t := ticket{
		Strategy: sel.String(), Policy: cfg.Policy.Name, Limit: cfg.Policy.Limit, Used: cfg.Used,
		Clients: cfg.Clients, Instances: cfg.Instances, Skew: cfg.Skew, Faults: cfg.Faults,
		Times: cfg.Times, Passes: cfg.Passes, Learns: cfg.LearnWindow, From: cfg.From, Jobs: cfg.JobRounds,
		Property: property,
	}
	if cfg.Ticks != cfg.Times+1 {
		t.Ticks = cfg.Ticks
	}
	if cfg.Seed != 1 {
		t.Seed = cfg.Seed
	}
	if cfg.Second.Limit > 0 {
		t.Second = cfg.Second.Text()
	}
	if cfg.Asks != bounds.DefaultAsks {
		t.Asks = cfg.Asks
	}
	for _, script := range cfg.Scripts {
		t.Scripts = append(t.Scripts, script.String())
	}
	if known, err := quota.LookupPolicy(cfg.Policy.Name); err != nil || !samePolicy(&known, &cfg.Policy) {
		t.Own = packPolicy(&cfg.Policy)
	}
	t.Path = pathText(path)
	return t.encode()
}

// parsePath reads what [pathText] writes.
func parsePath(text string) (path []engine.Choice, err error) {
	for _, word := range strings.Fields(text) {
		choice, err := engine.ParseChoice(word)
		if err != nil {
			return nil, err
		}
		path = append(path, choice)
	}
	return path, nil
}

// pathText is a schedule as tokens hold it.
func pathText(path []engine.Choice) string {
	return format.List(path, " ", engine.Choice.String)
}

// encode packs a ticket: its compressed JSON form, after the sum of that.
func (t *ticket) encode() string {
	plain, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	var buffer bytes.Buffer
	writer, err := flate.NewWriterDict(&buffer, flate.BestCompression, []byte(familiar))
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = writer.Write(plain) // a buffer takes everything
	_ = writer.Close()
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(buffer.Bytes()))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(sum, buffer.Bytes()...))
}

// ErrToken says that a text is no token: not one of ours, cut short, or changed.
var ErrToken = errors.New("not a token of explore, or not all of it")

var errPath = errors.New("its schedule is written in another way")

func parseToken(text string) (ticket, []engine.Choice, error) {
	t, err := unpack(text)
	if err != nil {
		return t, nil, err
	}
	path, err := parsePath(t.Path)
	if err != nil || pathText(path) != t.Path {
		return t, nil, fmt.Errorf("%w: %w", ErrToken, cmp.Or(err, errPath))
	}
	if !slices.Contains(properties, t.Property) &&
		!slices.Contains([]Property{Deadlock, SerializationFailure, Panicked}, t.Property) {
		return t, nil, fmt.Errorf("%w: it was issued for %q, which is no property", ErrToken, t.Property)
	}
	return t, path, nil
}

func unpack(text string) (t ticket, err error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok {
		return t, fmt.Errorf("%w: it does not begin with %s", ErrToken, tokenPrefix)
	}
	if len(body) > maxToken {
		return t, fmt.Errorf("%w: it is longer than any", ErrToken)
	}
	packed, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil || len(packed) < 4 || crc32.ChecksumIEEE(packed[4:]) != binary.BigEndian.Uint32(packed) {
		return t, ErrToken
	}
	source := bytes.NewReader(packed[4:])
	plain, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(source, []byte(familiar)), maxToken))
	if err != nil || source.Len() > 0 {
		return t, ErrToken
	}
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return t, fmt.Errorf("%w: %w", ErrToken, err)
	}
	// One schedule has one token: JSON would allow for other spellings.
	if again, err := json.Marshal(t); err != nil || !bytes.Equal(again, plain) {
		return t, ErrToken
	}
	return t, nil
}

// selection is the registered strategy that the ticket was issued for.
func (t *ticket) selection() (sel strategies.Selection, err error) {
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil {
		return sel, fmt.Errorf("%w; if it is registered in your own program, replay it there: go run . explore --replay TOKEN", err)
	}
	if len(chosen) != 1 {
		return sel, ErrToken
	}
	return chosen[0], nil
}

// config is what the ticket was issued for.
func (t *ticket) config(sel strategies.Selection, target *Target) (cfg Config, err error) {
	var policy quota.Policy
	if t.Own != nil {
		policy, err = t.Own.unpack(t.Policy)
	} else {
		policy, err = quota.LookupPolicy(t.Policy)
	}
	if err != nil {
		return cfg, err
	}
	scripts, err := ParseScripts(strings.Join(t.Scripts, ";"))
	if err != nil {
		return cfg, err
	}
	cfg = Config{
		Policy: policy, Limit: t.Limit, Used: t.Used, Clients: t.Clients, Scripts: scripts, Instances: t.Instances,
		Skew: t.Skew, Seed: t.Seed, Faults: t.Faults,
		Scope:     Scope{Times: t.Times, Ticks: t.Ticks, Passes: t.Passes, From: t.From, JobRounds: t.Jobs, Asks: t.Asks},
		Resources: Resources{Postgres: target.Postgres}, Process: target.Process,
	}
	if t.Second != "" {
		cfg.Second, err = quota.ParsePolicy(t.Second)
		if err != nil {
			return cfg, fmt.Errorf("%w: its second window: %w", ErrToken, err)
		}
	}
	if cfg.Service != "" {
		cfg.Redis = target.Redis
		cfg.LearnWindow = t.Learns
	}
	return cfg.Complete(sel)
}

// ownPolicyTicket is what a token holds of a policy that is not registered. The
// limit is apart.
type ownPolicyTicket struct {
	Unit     string        `json:"u,omitempty"`
	Kind     quota.Kind    `json:"k"`
	Length   time.Duration `json:"n,omitempty"`
	Refill   int64         `json:"r,omitempty"`
	Location string        `json:"z,omitempty"`
}

func packPolicy(policy *quota.Policy) *ownPolicyTicket {
	ticket := &ownPolicyTicket{Unit: policy.Unit, Kind: policy.Window.Kind, Length: policy.Window.Length,
		Refill: policy.Window.Refill}
	if policy.Window.Location != nil {
		ticket.Location = policy.Window.Location.String()
	}
	return ticket
}

func (o *ownPolicyTicket) unpack(name string) (quota.Policy, error) {
	policy := quota.Policy{Name: name, Unit: o.Unit,
		Window: quota.Window{Kind: o.Kind, Length: o.Length, Refill: o.Refill}}
	if o.Location != "" {
		loc, err := time.LoadLocation(o.Location)
		if err != nil {
			return policy, fmt.Errorf("%w: its policy's time zone: %w", ErrToken, err)
		}
		policy.Window.Location = loc
	}
	if name == "" || o.Kind.HasLength() && o.Length < time.Millisecond || o.Kind == quota.Bucket && o.Refill < 1 {
		return policy, fmt.Errorf("%w: its policy has no name, or a window without a length or a refill", ErrToken)
	}
	return policy, nil
}

// samePolicy reports whether two policies differ in nothing but their limits.
func samePolicy(a, b *quota.Policy) bool {
	return *packPolicy(a) == *packPolicy(b)
}
