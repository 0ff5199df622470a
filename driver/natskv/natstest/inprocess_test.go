//go:build !integration

package natstest

func asProcess() {}
