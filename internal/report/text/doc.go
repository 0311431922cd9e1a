// Package text says what results mean as documents: the answer, tables of summaries, what the audit found, and what the
// figures were measured on. It writes them for a terminal. Markdown and pages have the same documents.
package text
