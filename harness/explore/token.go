package explore

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// tokenPrefix tells tokens apart from anything else, and versions from each other.
const tokenPrefix = "qb1."

// maxToken bounds what a token can make us read.
const maxToken = 1 << 20

// ticket is what a token holds: everything that a schedule depends on.
type ticket struct {
	Strategy  string             `json:"s"`
	Policy    string             `json:"p"`
	Limit     int64              `json:"l"`
	Used      int64              `json:"u,omitempty"`
	Clients   int                `json:"c"`
	Instances int                `json:"i"`
	Scripts   []string           `json:"a"`
	Skew      []time.Duration    `json:"k,omitempty"`
	Faults    []strategies.Fault `json:"f,omitempty"`
	Times     int                `json:"t"`
	Jobs      int                `json:"j"`
	Property  Property           `json:"b"`
	Path      string             `json:"x"`
}

func (w *world) token(path []choice, p Property) string {
	t := ticket{
		Strategy: w.sel.String(), Policy: w.cfg.Policy.Name, Limit: w.cfg.Policy.Limit, Used: w.cfg.Used,
		Clients: w.cfg.Clients, Instances: w.cfg.Instances, Skew: w.cfg.Skew, Faults: w.cfg.Faults,
		Times: w.cfg.Times, Jobs: w.cfg.JobRounds, Property: p,
	}
	for _, s := range w.cfg.Scripts {
		t.Scripts = append(t.Scripts, s.String())
	}
	steps := make([]string, len(path))
	for i, c := range path {
		steps[i] = c.String()
	}
	t.Path = strings.Join(steps, " ")
	plain, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always have a form
	}
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = z.Write(plain) // a buffer takes everything
	_ = z.Close()
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b.Bytes())
}

var errToken = errors.New("not a token of explore, or not all of it")

func parseToken(text string) (ticket, []choice, error) {
	var t ticket
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !ok || len(body) > maxToken {
		return t, nil, errToken
	}
	packed, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return t, nil, fmt.Errorf("%w: %w", errToken, err)
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxToken))
	if err != nil {
		return t, nil, fmt.Errorf("%w: %w", errToken, err)
	}
	if err := json.Unmarshal(plain, &t); err != nil {
		return t, nil, fmt.Errorf("%w: %w", errToken, err)
	}
	var path []choice
	for _, s := range strings.Fields(t.Path) {
		c, err := parseChoice(s)
		if err != nil {
			return t, nil, fmt.Errorf("%w: %w", errToken, err)
		}
		path = append(path, c)
	}
	return t, path, nil
}

// config is what the ticket was issued for.
func (t *ticket) config() (strategies.Selection, Config, error) {
	var cfg Config
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil {
		return strategies.Selection{}, cfg, err
	}
	if len(chosen) != 1 {
		return strategies.Selection{}, cfg, errToken
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
		Skew: t.Skew, Faults: t.Faults, Times: t.Times, JobRounds: t.Jobs,
	}
	cfg, err = cfg.complete(chosen[0])
	return chosen[0], cfg, err
}
