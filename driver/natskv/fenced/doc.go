// Package fenced publishes to a JetStream stream on behalf of a leader, such that the server refuses it once another one has
// taken over.
//
//	p, err := fenced.Open(ctx, term, js, "PAYMENTS", "payments.fence")
//	...
//	ack, err := p.Publish(ctx, &nats.Msg{Subject: "payments.debit", Data: data})
//
// A lease cannot stop a process that was frozen between looking at it and publishing. A condition can that the server checks
// with each message. A few subjects of the application's own stream are the fence. Open puts a message with the term's token on
// each by compare-and-swap, unless a newer term's is there, and every message of the term is sent under the condition that
// the last message of one of them is still the term's (the header Nats-Expected-Last-Subject-Sequence-Subject). Any store can hold the
// election.
//
// # What is guaranteed
//
//   - No message of an older term stands after the first message of a newer one, in the whole stream, over all subjects.
//   - When Open has returned nil, the earlier terms have in the stream all that they ever will. A new leader that reads up
//     to [Publisher.Begin] knows what they did, all of it.
//   - An error means that the message is not stored and never will be, but for ErrUnknown, which
//     says that it is not known. On a replicated stream that includes each refusal for a condition
//     of the caller's own (Nats-Expected-Last-Sequence): another server may have stored the
//     message.
//   - Without the fence nothing is accepted: a fence that has expired, was purged or crowded out by
//     other messages has the server refuse. A leader whose lease is valid then takes back all
//     subjects of it, within the same call of Publish and before it sends the message again.
//
// A message that is on its way when the lease ends may land later, if it does so before the next leader's Open. So a new
// leader opens first, then reads, then works.
//
// This holds on one server and on replicated streams, while the stream's leader is killed, paused, cut off or changed
// (test/fencednats). Why is in docs/adr/0016-fenced-messages.md.
//
// # What consumers see
//
// Each message carries the token in the header Tenure-Token: see [Token]. A consumer that listens on all subjects of the
// stream also sees the fence's messages, eight for each term, and passes over them: see [IsFence].
//
// # What is not guaranteed
//
// An election whose store was lost may count its terms from the beginning. The fence in the stream
// is of a higher term then, and refuses the new leaders as if they were deposed, with ErrFenced,
// tenure.ErrLost and a text that says so. Stop all leaders of before, and remove the fence from the
// stream: what they sent can land no more.
//
// The fence is as good as the server's memory. A stream in memory that a restart empties, a restored backup, a power failure that takes
// back what was acknowledged (sync_interval) may take back the fence, and sequences come again: late messages of an older term
// may pass then. The same goes for a message of the fence that somebody deletes by its sequence, unless the stream allows
// roll-ups. In a stream that was deleted and made again nothing of before passes.
//
// A leader whose clocks all stood still (a virtual machine frozen, then resumed) is stopped by the
// fence of the next one, also by a single subject that is left of it. If all eight have gone
// missing, the old leader takes itself for the leader and puts up a fence of its own. What it
// publishes then stands after messages of the next term, up to where the next leader publishes
// again: that call takes the whole fence back before it sends. So keep the fence: no MaxAge without
// AllowMsgTTL, no limits of the whole stream that discard old messages, no Nats-Rollup: all by
// other means.
//
// There is no order between messages through a Publisher and those by other means. Scheduled
// messages, which the server publishes later without any condition, atomic batches and roll-ups of
// the whole stream are refused with ErrHeader. So is Nats-Expected-Last-Msg-Id on a replicated
// stream: when servers of release 2.15.2 refuse a message for it, they stop serving the stream,
// also after a restart.
//
// # Rights
//
// Publish on $JS.API.STREAM.INFO.S and $JS.API.STREAM.MSG.GET.S for a stream S, on everything below the fence, and on what is
// published; subscribe on _INBOX.>. A missing right to publish comes back as driver.ErrDenied, with the subject.
//
// # What it costs
//
// Three requests for each subject of the fence, all at the same time, and two about the stream,
// when a term opens. Then a header of some hundred bytes for each message. Publishing one message
// after another took 53 µs instead of 32 µs at the median on one server, 0.62 ms instead of 0.57 ms
// on three (go test -tags integration -run '^$' -bench . here and in test/fencednats, on two busy
// cores).
//
// A replicated stream lets one message at a time pass a condition, hence the eight subjects: eight messages can be on their way,
// and more wait. It is also where two servers may take themselves for the stream's leader for a moment. A message without a
// Nats-Msg-Id gets one there, so that a refusal by the wrong one can be told from the right one's word; the servers remember
// ids for the stream's duplicate window, which should be no shorter than calls of Publish take, and for very many messages not
// much longer.
//
// # Limits
//
// nats-server 2.11 or newer, on all servers of a stream. With an older one Open returns ErrUnfit;
// one that comes to lead the stream later refuses every message. Open refuses as well: retention by
// interest, a work queue without roll-ups, mirrors, no_ack, a transform of subjects, and
// persist_mode async, with which a server that is killed forgets fences that it has acknowledged.
//
// The account must not map the subjects below the fence to others. Each message of the fence is
// read back after it was acknowledged: one that is stored under another subject makes Open, or the
// Publish that takes the fence back, return ErrUnfit.
package fenced
