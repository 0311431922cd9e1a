//go:build !linux

package cores

import "time"

// Allowed is not known here.
func Allowed() (Set, bool) { return nil, false }

// AllowedTo is not known here.
func AllowedTo(int) (Set, bool) { return nil, false }

// Confine cannot be done here.
func Confine(int, Set) error { return ErrUnsupported }

// ConfineSelf cannot be done here.
func ConfineSelf(Set) (free func() error, err error) { return nil, ErrUnsupported }

// ThreadTimes are not known here.
func ThreadTimes(int) (ran, waited time.Duration) { return 0, 0 }

// Tree is the process alone: its children are not known here.
func Tree(pid int) []int { return []int{pid} }

// Adjacent is the order of the numbers: what the cores share is not known here.
func Adjacent(s Set) []int { return s }
