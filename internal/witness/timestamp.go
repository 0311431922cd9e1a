package witness

import (
	"strconv"
	"time"
)

// units in which timestamps are told: seconds, milliseconds, microseconds and
// nanoseconds since 1970.
const units = 4

var unitNames = [units]string{"seconds", "milliseconds", "microseconds", "nanoseconds"}

func inUnit(t time.Time, unit int) float64 {
	ns := float64(t.UnixNano())
	return [units]float64{ns / 1e9, ns / 1e6, ns / 1e3, ns}[unit]
}

// timestamp is the unit in which an argument tells a time near the wall clock's,
// or empty where it tells none.
func (w *Witness) timestamp(arg any) string {
	var n float64
	switch v := arg.(type) {
	case int64:
		n = float64(v)
	case int:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float64:
		n = v
	case string:
		return w.digits(v)
	case []byte:
		return w.digits(string(v))
	case time.Time:
		if v.Sub(w.cfg.Real).Abs() < near {
			return "full"
		}
		return ""
	default:
		return ""
	}
	return w.unit(n)
}

// digits reads a text that is nothing but a number of at least ten digits. It is
// cheap for other texts, which most arguments are.
func (w *Witness) digits(s string) string {
	if len(s) < 10 || len(s) > 32 || s[0] < '1' || s[0] > '9' {
		return ""
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && c != '.' && c != 'e' && c != '+' {
			return ""
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return ""
	}
	return w.unit(n)
}

func (w *Witness) unit(n float64) string {
	if n < w.lowest[0] {
		return ""
	}
	for i := range units {
		if n >= w.lowest[i] && n <= w.highest[i] {
			return unitNames[i]
		}
	}
	return ""
}
