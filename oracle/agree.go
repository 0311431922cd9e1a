package oracle

import (
	"fmt"
	"iter"
	"strings"
)

// Key names a subject-window.
type Key struct {
	Subject uint32
	Index   int64
}

// Agree compares what the cells of a run counted with the verdict on its history,
// and returns an error that says precisely where they contradict each other:
// then one of them is wrong, and the run proves nothing.
//
// Admitted units must be equal everywhere, and the leak in windows that no
// request crossed, of subjects that gave nothing back, unless the policy is
// rolling. A false reject that a cell found must be one for the verdict, except
// in windows that were crossed. If units were given back, the cell knows the
// order of two operations that share a timestamp and the history does not: there
// the false reject need only be possible. The same holds in windows in which the limit
// changed, for the cell knows which limit a request saw; their leak is not compared.
func Agree(v Verdict, cfg Config, cells iter.Seq2[Key, *Cell]) error {
	windows := make(map[Key]*windowVerdict, len(v.Windows))
	for i := range v.Windows {
		w := &v.Windows[i]
		windows[Key{w.Subject, w.Index}] = w
	}
	var found []string
	report := func(k Key, format string, args ...any) {
		found = append(found, fmt.Sprintf("subject %d, window %d: ", k.Subject, k.Index)+fmt.Sprintf(format, args...))
	}
	for k, c := range cells {
		t := c.Tally()
		w := windows[k]
		delete(windows, k)
		if w == nil {
			if t.Asked != 0 {
				report(k, "%d units asked online, no request in the history", t.Asked)
			}
			continue
		}
		if t.Admitted != w.Admitted {
			report(k, "admitted %d units online, %d in the history", t.Admitted, w.Admitted)
		}
		if w.Crossed && !t.Crossed {
			report(k, "a request crossed its boundary, unnoticed online")
		}
		if w.Crossed || t.Crossed {
			continue
		}
		gaveBack := w.GaveBack || t.GaveBack != 0
		limit, steady := cfg.within(k.Index)
		if leak := t.Leak(limit); leak != w.Leak && !gaveBack && steady && cfg.leakIsPlain() {
			report(k, "leak of %d units online, %d in the history", leak, w.Leak)
		}
		bound, what := w.FalseRejects, "certain"
		if gaveBack || !steady {
			bound, what = w.FalseRejectsPossible, "possible"
		}
		if t.FalseRejects > bound {
			report(k, "%d false rejects online, only %d %s in the history", t.FalseRejects, bound, what)
		}
	}
	for i := range v.Windows {
		w := &v.Windows[i]
		k := Key{w.Subject, w.Index}
		// A window that was only passed through was no request's at the call.
		if windows[k] != nil && (w.Admitted != 0 || !w.Crossed) {
			report(k, "in the history, but not counted online")
		}
	}
	if len(found) == 0 {
		return nil
	}
	const shown = 5
	n := len(found)
	if n > shown {
		found = append(found[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return fmt.Errorf("the online count and the history disagree in %d places: %s", n, strings.Join(found, "; "))
}
