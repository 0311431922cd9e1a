package postgres

import (
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// verifier is what a server started here keeps of its password. The password is random, so
// that hashing it once protects it as well as the usual 4,096 times, which take a
// millisecond of both sides at each connection of each run.
func verifier(password string) string {
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	salt := crand.Text()
	salted := mac([]byte(password), salt+"\x00\x00\x00\x01")
	stored := sha256.Sum256(mac(salted, "Client Key"))
	text := base64.StdEncoding.EncodeToString
	return "SCRAM-SHA-256$1:" + text([]byte(salt)) + "$" + text(stored[:]) + ":" + text(mac(salted, "Server Key"))
}
