// Package connection sends the requests of a store over NATS, and reports why one gets no answer.
// The client library lets a request wait for its context if a right is missing, the connection is
// lost or the server is cut off from its cluster; a leader would find out when its lease is over.
// So each request is monitored, and a supervisor replaces a connection of the store's own that
// fails. The package knows requests and answers. It knows nothing of buckets and elections.
package connection
