// Package text renders results for a terminal: tables of summaries, what the audit
// found, and what the figures were measured on.
package text
