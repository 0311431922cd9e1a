package explore

import (
	"bytes"
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

	"github.com/quotabench/quotabench/quota"
	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// tokenPrefix tells tokens apart from anything else, and versions from each other.
const tokenPrefix = "qb1."

// maxToken bounds what a token can make us read.
const maxToken = 1 << 20

// ticket is what a token holds: everything that a schedule depends on.
type ticket struct {
	Strategy  string          `json:"s"`
	Policy    string          `json:"p"`
	Limit     int64           `json:"l"`
	Used      int64           `json:"u,omitempty"`
	Clients   int             `json:"c"`
	Instances int             `json:"i"`
	Scripts   []string        `json:"a"`
	Skew      []time.Duration `json:"k,omitempty"`
	Seed      uint64          `json:"r,omitempty"`
	Faults    []quota.Fault   `json:"f,omitempty"`
	Times     int             `json:"t"`
	Jobs      int             `json:"j"`
	Property  Property        `json:"b"`
	Path      string          `json:"x"`
}

// familiar is what most tickets are made of: the compressor refers to it, so that
// tokens stay short. To change it is to change the version in [tokenPrefix].
const familiar = `","f":["crash","lost-reply","retry","clock","eviction","outage"],"b":"guarantee","b":"false-reject","b":"drift",` +
	`"b":"ttl","b":"stranded","b":"negative","b":"stuck"commit,refund","take"],"a":["take,refund","u":,"k":,"r":` +
	`{"s":"three-tier:redis-hash:lua-reserve:incr-expire:check-then-set","p":"user-links","p":"link-hits","p":"agent-api","p":"tenant-uploads",` +
	`"l":1,"c":3,"i":3,"a":["take"],"l":1,"c":2,"i":2,"a":["take"],"t":1,"j":1,"b":"leak","x":"s0 s1 s0 s1 s2 s1 s0 s2`

func (w *world) token(path []choice, p Property) string {
	t := ticket{
		Strategy: w.sel.String(), Policy: w.cfg.Policy.Name, Limit: w.cfg.Policy.Limit, Used: w.cfg.Used,
		Clients: w.cfg.Clients, Instances: w.cfg.Instances, Skew: w.cfg.Skew, Faults: w.cfg.Faults,
		Times: w.cfg.Times, Jobs: w.cfg.JobRounds, Property: p,
	}
	if w.cfg.Seed != 1 {
		t.Seed = w.cfg.Seed
	}
	for _, s := range w.cfg.Scripts {
		t.Scripts = append(t.Scripts, s.String())
	}
	steps := make([]string, len(path))
	for i, c := range path {
		steps[i] = c.String()
	}
	t.Path = strings.Join(steps, " ")
	return t.encode()
}

// encode packs a ticket: its sum, then its compressed JSON form.
func (t *ticket) encode() string {
	plain, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	var b bytes.Buffer
	b.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(plain)))
	z, err := flate.NewWriterDict(&b, flate.BestCompression, []byte(familiar))
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = z.Write(plain) // a buffer takes everything
	_ = z.Close()
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// ErrToken says that a text is no token: not one of ours, cut short, or changed.
var ErrToken = errors.New("not a token of explore, or not all of it")

func parseToken(text string) (ticket, []choice, error) {
	t, err := unpack(text)
	if err != nil {
		return t, nil, err
	}
	var path []choice
	for s := range strings.SplitSeq(t.Path, " ") {
		if t.Path == "" {
			break
		}
		c, err := parseChoice(s)
		if err != nil {
			return t, nil, fmt.Errorf("%w: %w", ErrToken, err)
		}
		path = append(path, c)
	}
	if !slices.Contains(properties, t.Property) && !isHappening(t.Property) {
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
	if err != nil || len(packed) < 4 {
		return t, ErrToken
	}
	source := bytes.NewReader(packed[4:])
	plain, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(source, []byte(familiar)), maxToken))
	if err != nil || source.Len() > 0 || crc32.ChecksumIEEE(plain) != binary.BigEndian.Uint32(packed) {
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

// config is what the ticket was issued for.
func (t *ticket) config(pg *pgstore.Store) (strategies.Selection, Config, error) {
	var cfg Config
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil {
		return strategies.Selection{}, cfg, err
	}
	if len(chosen) != 1 {
		return strategies.Selection{}, cfg, ErrToken
	}
	p, err := quota.LookupPolicy(t.Policy)
	if err != nil {
		return chosen[0], cfg, err
	}
	scripts, err := ParseScripts(strings.Join(t.Scripts, ";"))
	if err != nil {
		return chosen[0], cfg, err
	}
	cfg = Config{
		Policy: p, Limit: t.Limit, Used: t.Used, Clients: t.Clients, Scripts: scripts, Instances: t.Instances,
		Skew: t.Skew, Seed: t.Seed, Faults: t.Faults, Times: t.Times, JobRounds: t.Jobs, Postgres: pg,
	}
	cfg, err = cfg.complete(chosen[0])
	return chosen[0], cfg, err
}
