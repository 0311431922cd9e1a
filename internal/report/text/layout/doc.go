// Package layout writes documents in terminal cells: tables whose columns give way,
// wrapped lines, paragraphs that hang from a heading, and timelines of schedules.
package layout
