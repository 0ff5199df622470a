//go:build unix && !linux

package wrap

const reaches = false
