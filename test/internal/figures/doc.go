// Package figures prints measurements: distributions, verdicts on values and their bounds, tables,
// and how late the machine woke a process meanwhile.
package figures
