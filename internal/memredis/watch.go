package memredis

import "slices"

// watch has the next EXEC fail if one of the keys changes before it.
func (s *session) watch(args []string) Reply {
	switch {
	case len(args) < 2:
		s.dirty = s.multi
		return wrongArity("watch")
	case s.multi:
		return fault("ERR WATCH inside MULTI is not allowed")
	}
	for _, key := range args[1:] {
		if slices.Contains(s.watched, key) {
			continue
		}
		if s.t.watchers == nil {
			s.t.watchers = map[string][]*session{}
		}
		s.t.watchers[key] = append(s.t.watchers[key], s)
		s.watched = append(s.watched, key)
	}
	return okReply
}

func (s *session) unwatch() {
	for _, key := range s.watched {
		left := slices.DeleteFunc(s.t.watchers[key], func(x *session) bool { return x == s })
		if s.t.watchers[key] = left; len(left) == 0 {
			delete(s.t.watchers, key)
		}
	}
	s.watched, s.changed = nil, false
}

// end ends a transaction.
func (s *session) end() {
	s.multi, s.dirty, s.queued = false, false, nil
	s.unwatch()
}

// touch tells those that watch a key that it has changed.
func (t *Table) touch(key string) {
	for _, s := range t.watchers[key] {
		s.changed = true
	}
}

// changes reports whether a command has changed its key without calling touch.
func changes(c *command, r Reply) bool {
	return !c.has(noted|touches) && r.Kind != Err && (r.Kind != Int || r.Int != 0 || !c.has(ifAny))
}
