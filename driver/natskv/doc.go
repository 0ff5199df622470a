// Package natskv holds elections in a bucket of the NATS JetStream Key-Value store. Use it where a
// service already talks to NATS with JetStream.
//
//	nc, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222", nats.MaxReconnects(-1))
//	...
//	js, err := jetstream.New(nc)
//	...
//	store, err := natskv.Open(ctx, js, "ELECTIONS",
//		natskv.Create(natskv.Replicas(3)), natskv.OwnConnection())
//	...
//	defer store.Close() // after the last Run has returned
//	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
//
// Leave out [Create] if an operator makes the bucket, and [Replicas] on a single server. Package
// driver/natskv/fenced publishes messages that the server refuses once another candidate leads.
//
// # What it relies on
//
// A cell is the last message on the subject $KV.<bucket>.<key>. Its version is that message's
// sequence in the stream KV_<bucket>. A compare-and-swap is one publish, which the stream's leader
// accepts only if that sequence is still the last one of the subject. Reads also go to the stream's
// leader. They never use a Direct Get, which any replica may answer from its past. The sequence
// counts every write to the bucket and never goes back while the stream lives. So it gives the
// floor of the terms, an upper bound on all earlier ones:
//
//   - In a bucket that [Create] made on a recent server, the sequence begins at the time of
//     creation as a number of microseconds, and the sequence is the floor.
//   - In any other bucket it begins at 1, and the floor is the sequence plus the time at which the
//     stream was created, in microseconds.
//
// A bucket may hold other keys, and may have a TTL, as one made by "nats kv add --ttl" has. The TTL
// only removes old records: servers apply it by their own clocks, and no lease depends on it.
//
// # What a bucket cannot promise
//
// Memory storage forgets the sequence when the server restarts, and terms may then be lower than
// before. In a bucket that counts from 1, sequences recur when it is deleted and recreated; terms
// do not. A server syncs its files every two minutes unless set to "sync_interval: always". So one
// power failure or kernel crash, in a cluster together with a pause or a cut of another server, can
// take back acknowledged writes. Then two leaders are possible. [Store.Inspect] reports memory
// storage and a bucket that counts from 1. A server does not show its sync_interval.
//
// # Rights
//
// On a server with permissions, a candidate on bucket B needs to publish to
//
//	$KV.B.>                                      or the elections' keys alone: $KV.B.billing
//	$JS.API.STREAM.MSG.GET.KV_B
//	$JS.API.STREAM.INFO.KV_B
//	$JS.API.CONSUMER.CREATE.KV_B.*.$KV.B.>       to be notified of changes at once
//	$JS.FC.KV_B.>                                the same (flow control)
//
// and to subscribe to
//
//	_INBOX.>                                     or the prefix given by nats.CustomInboxPrefix
//
// An observer needs the same without the first line. [Create] also needs to publish to $JS.API.INFO
// and to $JS.API.STREAM.CREATE.KV_B. If the bucket is in a JetStream domain D, users on servers
// outside of the domain need $JS.D.API in place of $JS.API, and $JS.D.API.$KV.B.> in place of
// $KV.B.>; users on servers in the domain need the rights as listed here. docs/nats.md has all this
// as the configuration of a server.
//
// A server does not answer a request that it refuses because rights are missing. It sends an error
// to the connection, and the client library keeps it as the connection's last error. While a
// request waits, the store checks that error. So a missing right comes back as driver.ErrDenied
// after a few milliseconds, with the subject in its text. The store changes no handler of the
// connection. If the server refuses many requests within the same milliseconds, the store sees only
// the last refusal; the other calls end without the reason, which a later attempt shows. Over a
// connection of its own, see [OwnConnection], the store sees each.
//
// # Calls
//
// This section is about a Store made by Open. Over a handle, calls follow the client library: see
// [FromKeyValue]. A call is one attempt: a publish, or one or two requests. The first write after a
// reconnect takes one request more. The store sends nothing while the connection is down. A call
// whose connection is lost ends with an error at once, though its write may have been applied.
// Every call ends with its context, even while the client library holds its lock to wait for a
// frozen server. A read also ends when it has waited 2 s and no other read of the store was
// answered in that time. The same holds for a write and other writes. Over a connection of the
// store's own, 1 s replaces the 2 s, or four times the last round trip if that is longer.
//
// A store sends at most 128 reads at a time; further reads wait in the process. Writes do not wait.
//
// After a reconnect to another cluster's bucket of the same name, or to an older bucket that was
// put back, a store does nothing there: see [ErrTwoClusters].
package natskv
