package measure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/host/cores"
)

// What [Cores] can ask for.
const (
	CoresAuto   = "auto"   // decided for each strategy and load
	CoresShared = "shared" // the system places harness and stores as it likes
	CoresApart  = "apart"  // harness and stores on cores of their own wherever that is possible
	CoresGiven  = "given"  // as listed
)

// Cores says on which cores, by the system's numbers of logical processors, a
// measurement runs. The zero value is auto.
type Cores struct {
	// Mode is [CoresAuto], [CoresShared], [CoresApart] or [CoresGiven]; "" is auto.
	Mode string
	// Harness and Stores are the cores of this process and of the stores that were
	// started for it, if they are given. An empty one leaves that side as it is.
	Harness, Stores []int
}

const coresForm = "auto, shared, apart or e.g. harness=0-1,stores=2-3"

// ParseCores reads "auto", "shared", "apart" or lists of cores such as
// "harness=0-1,3,stores=2", of which one may be missing.
func ParseCores(text string) (Cores, error) {
	switch text {
	case CoresAuto, CoresShared, CoresApart:
		return Cores{Mode: text}, nil
	}
	parsed := Cores{Mode: CoresGiven}
	lists := map[string]string{}
	last := ""
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		switch _, again := lists[name]; {
		case named && name != "harness" && name != "stores", !named && last == "":
			return Cores{}, errors.New("give " + coresForm)
		case named && again:
			return Cores{}, fmt.Errorf("the cores of the %s are given twice", name)
		case named:
			last = name
			lists[name] = value
		default:
			lists[last] += "," + part
		}
	}
	for _, side := range []struct {
		name string
		into *[]int
	}{{"harness", &parsed.Harness}, {"stores", &parsed.Stores}} {
		list, given := lists[side.name]
		if !given {
			continue
		}
		set, err := cores.Parse(list)
		if err != nil {
			return Cores{}, fmt.Errorf("cores of the %s: %w", side.name, err)
		}
		*side.into = set
	}
	return parsed, nil
}

// String is the form that [ParseCores] reads.
func (c Cores) String() string {
	var lists []string
	if len(c.Harness) > 0 {
		lists = append(lists, "harness="+cores.Of(c.Harness...).String())
	}
	if len(c.Stores) > 0 {
		lists = append(lists, "stores="+cores.Of(c.Stores...).String())
	}
	switch c.Mode {
	case CoresGiven:
		return strings.Join(lists, ",")
	case "":
		return CoresAuto
	}
	return c.Mode
}

// check reports what cannot be had on a machine if this process may use the
// allowed cores. known is false if the system does not tell them.
func (c Cores) check(allowed cores.Set, known bool) error {
	switch c.Mode {
	case "", CoresAuto, CoresShared:
		return nil
	case CoresApart, CoresGiven:
	default:
		return fmt.Errorf("cores %q: give %s", c.Mode, coresForm)
	}
	switch {
	case !known:
		return fmt.Errorf("cores %s: %w: leave them to auto", c, cores.ErrUnsupported)
	case c.Mode == CoresApart && len(allowed) < 2:
		return fmt.Errorf("cores apart: this process may use core %s alone, and no core is left for the stores", allowed)
	case c.Mode == CoresApart:
		return nil
	case len(c.Harness) == 0 && len(c.Stores) == 0:
		return errors.New("no cores are given: " + coresForm)
	}
	for _, list := range []struct {
		name  string
		cores []int
	}{{"harness", c.Harness}, {"stores", c.Stores}} {
		if unknown := cores.Of(list.cores...).Without(allowed); len(unknown) > 0 {
			return fmt.Errorf("cores of the %s: there is no core %s here that this process may use: it may use %s", list.name,
				unknown, allowed)
		}
	}
	return nil
}

// overlap are the cores that both lists have.
func (c Cores) overlap() cores.Set {
	return slices.DeleteFunc(cores.Of(c.Harness...), func(n int) bool { return !slices.Contains(c.Stores, n) })
}
