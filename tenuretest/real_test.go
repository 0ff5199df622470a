//go:build integration

package tenuretest_test

func init() { inRealTime = true }
