// Package nats tests what is special to elections on NATS: buckets whose versions recur or whose
// records expire, and replicas that show old states. It has only tests.
//
// The servers are processes of their own: the test binary starts itself again. Most candidates live
// in the test, each on a connection of its own.
package nats
