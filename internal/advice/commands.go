package advice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// sends sees the commands that a client sends together.
func (d *driver) sends(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
	err := send(ctx)
	if len(cmds) == 1 {
		cmds[0].SetErr(err)
	}
	d.saw(cmds)
	return err
}

// saw looks at commands that were sent together. One that Redis refuses for it does not know the script is sent again.
func (d *driver) saw(cmds []redis.Cmder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	transaction := len(cmds) > 1 && cmds[0].Name() == "multi" // its keys must share a slot
	var together []string
	for _, cmd := range cmds {
		args := texts(cmd)
		named := keys(args)
		if src := source(args); src != "" {
			d.scripts[redis.NewScript(src).Hash()] = src
		}
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			continue
		}
		d.clocked(args, len(named))
		together = append(together, named...)
		if transaction && args[0] != "exec" {
			continue
		}
		d.slotted(together, cmds)
		together = nil
	}
	d.look(d.sent(cmds))
}

// slotted looks for two keys of one command, or transaction, that are in several slots of a cluster.
func (d *driver) slotted(together []string, cmds []redis.Cmder) {
	slices.Sort(together)
	for _, k := range together {
		if slot(k) != slot(together[0]) {
			two := []string{together[0], k}
			d.find(codes.AdviseSlots, d.sent(cmds),
				results.Advice{Keys: two, Slots: []int{int(slot(two[0])), int(slot(two[1]))}})
			return
		}
	}
}

// look notes the command that changed a key last, and the first one that left it without a time to live.
func (d *driver) look(command sent) {
	for i, miniredis := range d.mini {
		for _, k := range miniredis.Keys() {
			id := key{i, k}
			now := strings.Join(entries(miniredis, k), " ")
			lives := miniredis.TTL(k) > 0
			d.lived[id] = d.lived[id] || lives
			if d.content[id] == now {
				continue
			}
			d.content[id], d.last[id] = now, command
			if _, known := d.mortal[id]; !lives && !known {
				d.mortal[id] = command
			}
		}
	}
}

// entries are the parts of a key that it may grow by.
func entries(m *miniredis.Miniredis, k string) (out []string) {
	switch m.Type(k) {
	case "hash":
		out, _ = m.HKeys(k)
		for i, text := range out {
			out[i] += "=" + m.HGet(k, text)
		}
	case "list":
		out, _ = m.List(k)
	case "set":
		out, _ = m.Members(k)
	case "zset":
		out, _ = m.ZMembers(k)
	case "stream":
		entries, _ := m.Stream(k)
		for _, entry := range entries {
			out = append(out, entry.ID)
		}
	default:
		text, _ := m.Get(k)
		out = []string{text}
	}
	return out
}

var asksTime = regexp.MustCompile(`(?i)['"]time['"]`)

// clocked looks for the callers' time among the arguments that are no keys. A deadline in EXPIREAT is the callers' to
// say.
func (d *driver) clocked(args []string, keys int) {
	if strings.HasSuffix(args[0], "expireat") || asksTime.MatchString(d.script(args)) {
		return
	}
	for _, text := range args[min(len(args), 1+keys):] {
		n, err := strconv.ParseFloat(text, 64)
		for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, 1} {
			if at := float64(d.now.UnixNano()) / float64(unit); err == nil && math.Abs(n-at) < float64(near/unit) {
				d.find(codes.AdviseCallerClock, sent{d.name(args), d.text(args)}, results.Advice{})
				return
			}
		}
	}
}

func (d *driver) script(args []string) string {
	if src := source(args); src != "" {
		return src
	}
	return d.scripts[args[min(1, len(args)-1)]]
}

// source is that of a script that a command brings along.
func source(args []string) string {
	switch {
	case args[0] == "eval" && len(args) > 1:
		return args[1]
	case args[0] == "script" && len(args) > 2 && strings.EqualFold(args[1], "load"):
		return args[2]
	}
	return ""
}

// texts are a command's arguments, its name in lower case.
func texts(cmd redis.Cmder) []string {
	out := make([]string, len(cmd.Args()))
	for i, value := range cmd.Args() {
		if data, ok := value.([]byte); ok {
			value = string(data)
		}
		out[i] = fmt.Sprint(value)
	}
	out[0] = strings.ToLower(out[0])
	return out
}

// counted are the commands that say how many keys they have, with the place of that number; before it, some name a key
// to store in. All, two and none have as many as they have arguments, the first two, and none. The others are taken to
// have one.
var (
	counted = map[string]int{"eval": 2, "evalsha": 2, "eval_ro": 2, "evalsha_ro": 2, "fcall": 2, "fcall_ro": 2,
		"zunion": 1, "zinter": 1, "zdiff": 1, "sintercard": 1, "zintercard": 1, "zunionstore": 2, "zinterstore": 2,
		"zdiffstore": 2}
	two = strings.Fields("copy smove lmove blmove rpoplpush brpoplpush zrangestore geosearchstore")
	all = strings.Fields("del unlink exists touch watch mget sunion sinter sdiff sunionstore sinterstore sdiffstore " +
		"pfcount pfmerge rename renamenx")
	none = strings.Fields("multi exec discard unwatch script function time ping echo quit reset wait waitaof hello " +
		"client select auth info config command cluster dbsize scan flushdb flushall publish subscribe psubscribe " +
		"unsubscribe")
)

// keys are those that a command names.
func keys(args []string) []string {
	name := args[0]
	rest := args[1:]
	at, has := counted[name]
	switch {
	case len(rest) == 0 || slices.Contains(none, name):
		return nil
	case slices.Contains(all, name):
		return rest
	case slices.Contains(two, name):
		return rest[:min(2, len(rest))]
	case strings.HasPrefix(name, "mset"):
		var out []string
		for i := 0; i < len(rest); i += 2 {
			out = append(out, rest[i])
		}
		return out
	case has:
		n, _ := strconv.Atoi(args[min(at, len(args)-1)])
		from := min(at+1, len(args))
		named := args[from:min(from+n, len(args))]
		if strings.HasSuffix(name, "store") {
			return append(rest[:1:1], named...)
		}
		return named
	}
	return rest[:1]
}

// slot is the one of 16,384 that a key belongs to in a Redis Cluster: the CRC-16 of its hash tag, or of the whole key.
func slot(key string) uint16 {
	if _, tag, ok := strings.Cut(key, "{"); ok {
		tag, _, ok = strings.Cut(tag, "}")
		if ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			crc = crc<<1 ^ 0x1021*(crc>>15)
		}
	}
	return crc % 16384
}

// sent are commands that were sent together.
type sent struct {
	names string // each once, in their order
	text  string
}

func (d *driver) sent(cmds []redis.Cmder) sent {
	var names []string
	for _, cmd := range cmds {
		if name := d.name(texts(cmd)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return sent{
		names: strings.Join(names, " "),
		text:  format.List(cmds, "; ", func(cmd redis.Cmder) string { return d.text(texts(cmd)) }),
	}
}

// name is that of a command. A script that is called by its digest is EVAL, too.
func (d *driver) name(args []string) string {
	if d.script(args) != "" && len(args) > 2 {
		return "EVAL"
	}
	return strings.ToUpper(args[0])
}

// text shows a command, of a script its first line only.
func (d *driver) text(args []string) string {
	out := []string{d.name(args)}
	if src := d.script(args); src != "" && len(args) > 2 {
		args = append([]string{args[0], src}, args[2:]...)
	}
	for _, text := range args[1:] {
		if first, _, more := strings.Cut(strings.TrimSpace(text), "\n"); more || len(text) > 60 {
			text = fmt.Sprintf("%.30s...", first)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// find notes advice, or counts it if the same was found of commands with these names before.
func (d *driver) find(code codes.AdviceCode, command sent, more results.Advice) {
	for i := range d.found {
		if advice := &d.found[i]; advice.Code == code && advice.Names == command.names {
			advice.Count++
			return
		}
	}
	more.Strategy = d.sel.String()
	more.Code = code
	more.Policy = d.policy.String()
	more.Names = command.names
	more.Command = command.text
	more.Count = 1
	d.found = append(d.found, more)
}

// measure notes how many entries each key has.
func (d *driver) measure() {
	for i, miniredis := range d.mini {
		for _, k := range miniredis.Keys() {
			d.sizes[key{i, k}] = append(d.sizes[key{i, k}], len(entries(miniredis, k)))
		}
	}
}

// judge looks at the keys that are left, and at how they grew. What a standing quota counts must not expire.
func (d *driver) judge() {
	for _, k := range sorted(d.mortal) {
		miniredis := d.mini[k.store]
		advice := results.Advice{Keys: []string{k.name}}
		switch {
		case d.policy.Window.Kind == quota.Standing:
		case miniredis.Exists(k.name) && miniredis.TTL(k.name) == 0:
			d.find(codes.AdviseNoTTL, d.mortal[k], advice)
		case d.lived[k]:
			d.find(codes.AdviseTTLGap, d.mortal[k], advice)
		}
	}
	for _, k := range sorted(d.sizes) {
		if s := d.sizes[k]; len(s) == windows && s[0] < s[1] && s[1] < s[2] && s[2] < s[3] {
			d.find(codes.AdviseUnbounded, d.last[k], results.Advice{Keys: []string{k.name}, Entries: s})
		}
	}
}

func sorted[V any](m map[key]V) []key {
	return slices.SortedFunc(maps.Keys(m), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.store, b.store))
	})
}
