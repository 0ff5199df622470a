// Package stores tests what holds for every store, on real servers: conformance, linearizability
// and elections. `go test -tags integration -run /postgres ./test/stores` runs all of it for one
// store.
package stores
