package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/stores"
)

// Bounds of what is started for one store.
const (
	maxReplicas = 5
	minMasters  = 3 // Redis Cluster's own
	maxMasters  = 9
	maxWatchers = 9
)

// noEviction is Redis' name for a full memory that refuses writes.
const noEviction = "noeviction"

// shape is what a server that is started here consists of. The zero value is one
// server that keeps nothing.
type shape struct {
	replicas int // that follow the server, or each master
	masters  int // of a cluster; 0 for none
	// sentinels that watch a master with replicas; 0 for none.
	sentinels int
	durable   bool
	// memory is the most that each server may take, in bytes or with a unit, and policy what it does then, both as Redis
	// has them; empty for its defaults.
	memory, policy string
	// image is that of a container; empty for the default one.
	image string
}

// several reports whether it takes more than one server.
func (s shape) several() bool { return s.replicas > 0 || s.masters > 0 || s.sentinels > 0 }

// takeApart reads a spec such as "process:replicas=1": a word, and behind a colon
// what is to be started.
func takeApart(spec string) (word string, s shape, err error) {
	word, list, any := strings.Cut(spec, ":")
	if !any {
		return word, s, nil
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(list, ",") {
		name, value, valued := strings.Cut(part, "=")
		if seen[name] {
			return word, s, stores.WrongSpec(driverName, "%s:%s: %s is given twice: keep one", word, list, name)
		}
		seen[name] = true
		if err := s.take(word, name, value, valued); err != nil {
			return word, s, stores.WrongSpec(driverName, "%s:%s: %v", word, list, err)
		}
	}
	if s.masters > 0 && s.sentinels > 0 {
		const why = "%s:%s: a cluster needs no sentinels: give cluster or sentinel"
		return word, s, stores.WrongSpec(driverName, why, word, list)
	}
	return word, s, nil
}

// take takes one setting from behind the colon of a word.
func (s *shape) take(word, name, value string, valued bool) (err error) {
	switch {
	case name == "replicas" && valued:
		s.replicas, err = between(name, value, 1, maxReplicas)
	case name == "cluster" && valued:
		s.masters, err = between(name, value, minMasters, maxMasters)
	case name == "sentinel" && valued:
		s.sentinels, err = between(name, value, 1, maxWatchers)
	case name == "image" && value != "" && word == "container":
		s.image = value
	case name == "durable" && !valued:
		s.durable = true
	case name == "maxmemory" && value != "":
		if !memorySize.MatchString(value) {
			return fmt.Errorf("%s is no size of a memory: give one such as 8mb", value)
		}
		s.memory = value
	case name == "policy" && value != "" && s.memory != "":
		s.policy = value
	default:
		return errors.New("behind the colon stands replicas=N, cluster=N, sentinel=N, durable, maxmemory=N,policy=NAME, " +
			"or behind that of container image=IMAGE")
	}
	return err
}

func between(what, text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("give %s=%d to %d", what, least, most)
	}
	return n, nil
}

// memorySize is a size above 0 of at most 12 digits, as Redis takes it.
var memorySize = regexp.MustCompile(`(?i)^0*[1-9][0-9]{0,11}([kmg]b?|b)?$`)

// with adds what the shape asks of each server's settings.
func (s shape) with(options stores.Options) stores.Options {
	settings := map[string]string{}
	maps.Copy(settings, options.Settings)
	if s.durable {
		settings["appendonly"], settings["appendfsync"] = "yes", "always"
		// A rewrite forks in the middle of a run, and a run's log is short.
		settings["auto-aof-rewrite-percentage"] = "0"
	}
	if s.masters > 0 {
		settings["cluster-enabled"] = "yes"
	}
	if s.memory != "" {
		settings["maxmemory"], settings["maxmemory-policy"] = s.memory, cmp.Or(s.policy, noEviction)
	}
	if s.several() {
		settings["requirepass"] = passwordOf(options) // one client has one password
	}
	options.Settings = settings
	options.Image = cmp.Or(s.image, options.Image)
	return options
}

// open opens what the shape asks for, of servers that one makes.
func (s shape) open(ctx context.Context, options stores.Options,
	one func(stores.Options) (*Store, error)) (*Store, error) {
	options = s.with(options)
	switch {
	case s.masters > 0:
		return startCluster(ctx, s.masters, s.replicas, func() (*Store, error) { return one(options) })
	case s.sentinels > 0:
		return startSentinels(ctx, s, options, one)
	case s.replicas > 0:
		return startReplicated(ctx, s.replicas, options, one)
	}
	return one(options)
}

// errSeveral is why a kind of server cannot be several.
var errSeveral = errors.New("replicas and clusters are started as processes only: use process, " +
	"e.g. process:replicas=1, or give cluster:URL or sentinel:URL of servers of yours")
