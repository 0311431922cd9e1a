// Package layout lays text out in terminal cells: tables whose columns give way,
// wrapped lines, and paragraphs that hang from a heading.
package layout
