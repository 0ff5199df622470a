// Package redis tests elections in Redis: failovers that lose writes, eras, replicas, pushes and
// settings.
package redis
