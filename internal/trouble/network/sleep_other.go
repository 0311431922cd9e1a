//go:build !linux

package network

import "time"

var sleep = func(left int64) { time.Sleep(time.Duration(left)) }
