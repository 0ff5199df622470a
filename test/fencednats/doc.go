// Package fencednats tests package driver/natskv/fenced on one server process, and on three that
// replicate a stream and are paused, killed and cut off. It has only tests.
package fencednats
