// Package fenced publishes messages to a JetStream stream that the server refuses once another
// leader has taken over. Use it if a leader's work is to publish to a stream, and a late message of
// an earlier leader would do harm.
//
//	p, err := fenced.Open(ctx, term, js, "PAYMENTS", "payments.fence")
//	...
//	ack, err := p.Publish(ctx, &nats.Msg{Subject: "payments.debit", Data: data})
//
// A lease cannot stop a process that was frozen between its check of the lease and its publish. A
// condition that the server checks with each message can. A few subjects of the application's own
// stream are the fence. Open puts a message with the term's token on each of them by
// compare-and-swap, unless a message of a newer term is there. Every later message is sent under
// the condition that on one of these subjects the last message is still this term's (the header
// Nats-Expected-Last-Subject-Sequence-Subject). Any store can hold the election.
//
// # What is guaranteed
//
//   - No message of an older term stands after the first message of a newer one, in the whole
//     stream, over all subjects.
//   - When Open has returned nil, the stream has all messages of earlier terms that it will ever
//     have. A new leader that reads up to [Publisher.Begin] knows all that they did.
//   - An error means that the message is not stored and never will be, except for ErrUnknown, which
//     means that this is not known. On a replicated stream ErrUnknown includes each refusal for a
//     condition of the caller's own (Nats-Expected-Last-Sequence): another server may have stored
//     the message.
//   - Without the fence nothing is accepted: the server refuses messages when the fence has
//     expired, was purged or was crowded out by other messages. A leader whose lease is valid then
//     takes back all its subjects, within the same call of Publish and before it sends the message
//     again.
//
// A message that is on its way when the lease ends may land later, if it does so before the next
// leader's Open. So a new leader opens first, then reads, then works.
//
// This holds on one server and on replicated streams, while the stream's leader is killed, paused,
// cut off or changed (test/fencednats). docs/adr/0016-fenced-messages.md explains why.
//
// # What consumers see
//
// Each message carries the token in the header Tenure-Token: see [Token]. A consumer that listens
// on all subjects of the stream also sees the fence's messages, eight for each term, and ignores
// them: see [IsFence].
//
// # What is not guaranteed
//
// An election whose store was lost may count its terms from the beginning. The fence in the stream
// then has a higher term, and refuses the new leaders as if they were deposed, with ErrFenced,
// tenure.ErrLost and a text that explains it. Stop all earlier leaders, then remove the fence from
// the stream. From then on the server refuses messages that they sent before.
//
// The fence is as good as the server's memory. A stream in memory that a restart empties, a
// restored backup, or a power failure that takes back acknowledged messages (sync_interval) may
// take back the fence, and sequences recur: late messages of an older term may pass then. The same
// applies to a message of the fence that is deleted by its sequence, unless the stream allows
// roll-ups. In a stream that was deleted and recreated, no earlier message passes.
//
// The next leader's fence stops a leader whose clocks all stood still (a virtual machine frozen,
// then resumed), even if a single subject of the fence is left. If all eight have gone missing, the
// old leader believes that it leads and puts up a fence of its own. Its messages then stand after
// messages of the next term, up to where the next leader publishes again: that call takes the whole
// fence back before it sends. So keep the fence. Set MaxAge only with AllowMsgTTL. Set no limit of
// the whole stream that discards old messages. Let no other program publish a message with the
// header Nats-Rollup and the value "all".
//
// There is no order between messages through a Publisher and those by other means. Scheduled
// messages, which the server publishes later without any condition, atomic batches and roll-ups of
// the whole stream are refused with ErrHeader. So are Nats-Expected-Last-Subject-Sequence and
// Nats-Expected-Last-Subject-Sequence-Subject, and on a replicated stream
// Nats-Expected-Last-Msg-Id: when servers of release 2.15.2 refuse a message for it, they stop
// serving the stream, also after a restart.
//
// # Rights
//
// Publish on $JS.API.STREAM.INFO.S and $JS.API.STREAM.MSG.GET.S for a stream S, on everything below
// the fence, and on the subjects of the messages; subscribe on _INBOX.>. A missing right to publish
// comes back as driver.ErrDenied, with the subject.
//
// # What it costs
//
// When a term opens: three requests for each subject of the fence, all at the same time, and two
// about the stream. Then a header of some hundred bytes for each message. Publishing one message
// after another took 53 µs instead of 32 µs at the median on one server, 0.62 ms instead of 0.57 ms
// on three (go test -tags integration -run '^$' -bench . here and in test/fencednats, on two busy
// cores).
//
// A replicated stream lets one message at a time pass a condition, hence the eight subjects: eight
// messages can be on their way, and more wait. For a moment, two of its servers may also believe
// that they lead the stream. So on a replicated stream the Publisher gives each message without a
// Nats-Msg-Id a random one, so that a refusal by the wrong server can be told from the answer of
// the right one. The servers remember ids for the stream's duplicate window. It should be no
// shorter than calls of Publish take, and for very many messages not much longer.
//
// # Limits
//
// nats-server 2.11 or newer, on all servers of a stream. With an older one Open returns ErrUnfit;
// an older one that later leads the stream refuses every message. Open also refuses: retention by
// interest, a work queue without roll-ups, mirrors, no_ack, a transform of subjects, and
// persist_mode async, with which a server that is killed forgets fences that it has acknowledged.
//
// The account must not map the subjects below the fence to others. Each message of the fence is
// read back after it was acknowledged: one that is stored under another subject makes Open, or the
// Publish that takes the fence back, return ErrUnfit.
package fenced
