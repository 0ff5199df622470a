//go:build integration

package wrap

// reaches: processes that have left the group are found here, and the kernel has a timer.
const reaches = true
