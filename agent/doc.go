// Package agent lets programs in any language take part in elections, over HTTP, through an agent
// on the same machine or in the same pod. The command `tenure agent` serves it.
//
// A client begins a campaign, gets a stream of events, and sends heartbeats from the
// loop that does its work. The rules, which the code cites by number:
//
//   - A1. A campaign lives by its heartbeats. Each has a higher number than the one before, and any
//     other does not count, since it may be a repetition. A campaign is over when no heartbeat has
//     arrived for its interval, by the clock that a leader uses; when its stream ends; or when the
//     client leaves.
//   - A2. A campaign that is over is granted nothing more, and its lease is renewed no more. It
//     never revives. Why: a program that hangs must not lead for life.
//   - A3. A lease is released only if the client has reported that the work of this term has ended,
//     or was never told of the term. Otherwise it runs out. Why: the client may act after
//     its last heartbeat.
//   - A4. Only an answer grants time, and the client counts that from before it sent the question.
//     An event grants none, since it may have waited in a buffer.
//   - A5. After a term was lost, the campaign goes on when the client has reported the end of its
//     work. Why: two terms of one client must not overlap either.
//   - A6. The agent keeps nothing on disk. After a restart it waits out each lease, as any
//     candidate does.
//
// So a client acts for at most its interval and one lease after its last heartbeat. An agent cannot
// stop a client that acts without asking. Where that is needed, use `tenure run`, which can, or
// pass the token to the resource.
package agent
