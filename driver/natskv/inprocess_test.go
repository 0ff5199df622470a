//go:build !integration

package natskv

func asProcess() {}
