// Package fencednats tries package driver/natskv/fenced on server processes: alone, and three that
// replicate a stream and are paused, killed and cut off. All of it is tests.
package fencednats
