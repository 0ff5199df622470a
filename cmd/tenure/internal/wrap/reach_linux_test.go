//go:build integration

package wrap

// reaches: here the guard finds processes that have left the group, and the kernel has a timer.
const reaches = true
