// Package figures is how measurements are shown: distributions, how a value stands to its bound, the table, and how noisy the
// machine was meanwhile.
package figures
