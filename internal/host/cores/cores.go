// Package cores says which logical processors there are, and confines processes
// to some of them. Only Linux does so; elsewhere the functions say that they
// cannot.
package cores

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of logical processors by their numbers from 0, sorted and each once.
type Set []int

// most is one more than the highest number that a set may hold, the kernel's own
// bound on masks of processors.
const most = 1024

// ErrUnsupported is the error of a system that does not let programs choose cores.
var ErrUnsupported = errors.New("this system does not let a program choose its cores")

// Parse reads the form that Linux writes sets in: numbers and ranges with commas
// between them, e.g. "0-1,3". In any order, also more than once, a number counts
// once. An empty set is an error.
func Parse(text string) (Set, error) {
	var set Set
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		low, err := number(first)
		high := low
		if ranged && err == nil {
			high, err = number(last)
		}
		if err != nil || high < low {
			return nil, fmt.Errorf("%q is no list of cores: write e.g. 0-1,3, with numbers from 0 to %d", text, most-1)
		}
		for i := low; i <= high; i++ {
			set = append(set, i)
		}
		if len(set) > 2*most { // however often the list names a number
			set = Of(set...)
		}
	}
	return Of(set...), nil
}

func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err == nil && n >= most {
		err = strconv.ErrRange
	}
	return int(n), err
}

// Of returns the set of the numbers.
func Of(numbers ...int) Set {
	set := Set(slices.Clone(numbers))
	slices.Sort(set)
	return slices.Compact(set)
}

// String is the form that [Parse] reads, as short as it can be: "0-1,3". It is
// empty for an empty set.
func (s Set) String() string {
	var parts []string
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		part := strconv.Itoa(s[i])
		if j > i {
			part += "-" + strconv.Itoa(s[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Without returns the cores of s that are not in set.
func (s Set) Without(set Set) Set {
	return slices.DeleteFunc(slices.Clone(s), func(n int) bool { return slices.Contains(set, n) })
}
