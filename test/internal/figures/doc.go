// Package figures prints measurements: distributions, how a value stands to its bound, the table,
// and how noisy the machine was at that time.
package figures
