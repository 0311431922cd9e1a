// Package quota is the vocabulary that every other package shares: policies and
// their windows, requests, decisions and reservations. It is pure: it does no
// input or output, reads no clock and imports nothing else of this module.
//
// Units are whole numbers. What one unit is (a request, a token, a cent, a
// byte) is the policy's business and is named by [Policy.Unit].
package quota
