//go:build integration

package wrap

// reaches: what has left the group is found here, and the kernel has a timer.
const reaches = true
