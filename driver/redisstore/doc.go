// Package redisstore holds elections in Redis or Valkey. Use it where a service has such a server
// anyway.
//
//	store, err := redisstore.Open(ctx, rueidis.ClientOption{InitAddress: []string{"host:6379"}})
//
// # What is promised
//
// One server that keeps its data is a linearizable register, so there are never two leaders. The
// same holds after a failover, by Sentinel, Cluster or hand, if the former primary has stopped,
// even if the promoted replica lacks its last writes: see Eras. A failover that leaves two
// primaries, as a partition can, makes two leaders possible, unless [WithWait] has the number of
// all replicas.
//
// # A cell
//
// A cell is one hash, without an expiry. A read and a compare-and-swap are one Lua script each,
// which the server runs as a whole. The writer draws a random version of 128 bits for each write,
// so versions never recur, not even if a replica lacked writes or a backup was restored. The
// version also seals the value: members do not trust a value that was edited by hand for one lease.
//
// The hash holds the floor of the terms. Each write sets it to one above the larger of its last
// value and the server's clock in microseconds, so terms also grow after the key was removed or
// writes were lost. Terms can fall only if the hash is removed or replaced by an older one, and the
// clock of the server that serves next is behind by more than the time that passed, which is at
// least one lease after a failover.
//
// # Eras
//
// The era is the replication ID of the primary. A server draws a new one when it starts and when it
// is promoted. It also does so once when it has had no replica for repl-backlog-ttl (1 h by
// default). The script of a write stores the era in the hash, and refuses a write whose expected
// version was read in another era. If the hash is of another era than the server, every member
// waits one lease before it claims, also one that has just started. So a promoted replica that
// lacks a claim elects no second leader while the lost claim's lease runs. A leader that is still
// in the hash reads once more, and goes on.
//
// In a Cluster each primary has an ID of its own, so a slot that moves changes its era, and a slot
// that comes back comes back to its era. If the server between lost a claim, nothing shows that:
// move no slot within one lease after the server that has it crashed or failed over.
//
// # What the store cannot notice
//
//   - Two primaries that accept writes at once, see above.
//   - A key that is put back while the server runs (RESTORE, COPY, MIGRATE): its era is the
//     server's. Members that saw a later state notice it; a member that starts just then does not.
//   - A server whose data are replaced without a new replication ID. No release of Redis or Valkey
//     does that by itself.
//
// # Outcomes
//
// A write returns driver.ErrConflict only if the script has compared and refused. It returns
// driver.ErrDenied if the server says that a right or valid credentials are missing. Every other
// answer leaves the outcome open. That also holds for answers by which Redis refuses a request,
// such as READONLY, LOADING, OOM, MISCONF or CLUSTERDOWN: a proxy may give them after it has passed
// the request on. The client never repeats a write. In a Cluster it follows MOVED and ASK, by which
// a server refuses a request that is another server's.
//
// # Pushes
//
// The script publishes each write to one channel. One connection subscribes for all watches of a
// store. A user who may publish to the channel can send false messages, so pushes only cause a read
// or postpone one.
package redisstore
