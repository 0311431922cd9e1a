// Package plot draws results as SVG and as PNG. The same results give the same
// bytes.
package plot
