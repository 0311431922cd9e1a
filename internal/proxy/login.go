package proxy

import (
	"crypto/subtle"
	"fmt"
	"strings"
)

// What Redis gets in place of a command that is about the proxy's password: one that it answers by OK and that changes
// nothing, or one that it does not know, so that an error comes in its order.
var (
	accepted = encoded([][]byte{[]byte("CLIENT"), []byte("REPLY"), []byte("ON")})
	barred   = encoded([][]byte{[]byte("NOAUTH-LOG-IN-BY-THE-PASSWORD-OF-REDIS_URL")})
)

// login follows how the service logs in, and returns what Redis is sent in place of raw: nobody logs in to Redis by the
// proxy's password.
func (r *redis) login(args [][]byte, raw []byte) []byte {
	switch name := strings.ToLower(string(args[0][:min(len(args[0]), 16)])); {
	case name == "auth" && len(args) > 1:
		if !r.link.door.admits(args[len(args)-1]) {
			return barred
		}
		r.loggedIn = true
		return accepted
	case name == "hello":
		i := credentials(args)
		if i == 0 {
			break
		}
		if !r.link.door.admits(args[i+2]) {
			return barred
		}
		r.loggedIn = true
		return encoded(append(args[:i:i], args[i+3:]...))
	}
	if !r.loggedIn {
		return barred
	}
	return raw
}

// credentials is where a HELLO has AUTH, a name and a password; 0 if it has not.
func credentials(args [][]byte) int {
	for i := 1; i+2 < len(args); i++ {
		if strings.EqualFold(string(args[i]), "auth") {
			return i
		}
	}
	return 0
}

// admits reports whether a password is the proxy's.
func (d *Door) admits(password []byte) bool {
	return subtle.ConstantTimeCompare(password, []byte(d.password)) == 1
}

// encoded is a command as it is sent.
func encoded(args [][]byte) []byte {
	out := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, data := range args {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(data), data)
	}
	return out
}
