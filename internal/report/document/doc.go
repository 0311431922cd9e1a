// Package document is what reports say, apart from how they say it: prose, entries, tables of figures and schedules. A
// terminal, Markdown and a page walk the same document, and each of them decides its own form.
package document
