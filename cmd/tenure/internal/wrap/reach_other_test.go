//go:build integration && unix && !linux

package wrap

const reaches = false
