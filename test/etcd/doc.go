// Package etcd tests what is special to elections on etcd: snapshots that are restored in different
// ways, wiped clusters, watches that must not miss their end, and what Inspect sees. It has only
// tests. The servers are processes of their own.
package etcd
