// Package fenced writes to Kafka on behalf of a leader. The brokers refuse its writes once another
// leader has taken over. Use it if a leader's work is to write to Kafka, and a late write of an
// earlier leader would do harm.
//
//	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092"), kgo.DefaultProduceTopic("payments")}
//	p, err := fenced.Open(ctx, term, connection)
//	...
//	err = p.Produce(ctx, records...)
//
// A lease cannot stop a process that was frozen between its check of the lease and its write.
// Transactions of Kafka can: brokers hold one epoch for each transactional.id, which is the
// election's name here. Opening a producer raises the epoch and aborts open transactions. From then
// on, everything with an older epoch is refused, record or commit, however late it arrives. Any
// store can hold the election.
//
// # What is guaranteed
//
//   - In each partition every record committed by an older term stands before every one of a newer
//     term.
//   - When Open has returned nil, the earlier terms have committed everything that they ever will.
//     A new leader that reads committed records up to the end then knows all that they did.
//   - A call of Produce is one transaction: readers of committed records see all its records, in
//     all partitions, or none.
//   - An error means that nothing was or will be committed, except for ErrUnknown, which means that
//     this is not known.
//   - A deposed leader does not write under an epoch that it got too late, unless all of its clocks
//     stood still: see below.
//
// This is for readers with isolation.level read_committed
// (kgo.FetchIsolationLevel(kgo.ReadCommitted())). Others see aborted records as well, but these too
// stand before those of newer terms. docs/adr/0010-fenced-writes.md shows which order brokers keep.
//
// A commit that is on its way when the lease ends may land later, if it does so before the next
// leader's Open. So records of the old term may become visible while a new leader exists that has
// not opened its producer yet: it opens first, then reads, then works.
//
// # Which leader obtains a producer, and when
//
// The last leader that asked has the epoch. A leader asks only while enough of its lease is left,
// and checks the lease again after the answer and before each transaction and each commit. A
// request that a deposed leader sent in time, but that arrives after the new leader's, takes the
// epoch from the new one all the same. The old one sees that its lease is over and does nothing
// with the epoch. The new one is refused at its next write, and nothing of that write is committed.
// As its lease is valid, it asks again and repeats the transaction, within the same call of Produce
// (or returns ErrUnknown, if the brokers were about to abort when it sent the commit). No producer
// asks in the background, and a member that does not lead never asks. One leader does so at most
// three times a minute; after that Produce returns ErrFenced. Two programs that by mistake share a
// transactional.id thus stop with an error, and do not abort each other endlessly.
//
// # What is not guaranteed
//
// The check after the answer uses this process's clock. All its clocks may stand still (a virtual
// machine frozen, then resumed) while its request for an epoch overtakes the next leader's. Then it
// does not notice, and writes as if it led. The order is broken then, and the token shows it: each
// record carries it in the header tenure-token, and readers may skip records whose token is lower
// than one they have seen in the partition. Any other pause, in any other place, is covered.
//
// There is also no order between writes through a Producer and those by other means, and nothing is
// exactly once: a caller that repeats a call after ErrUnknown may write twice. Offsets of consumer
// groups cannot be committed in the same transaction.
//
// # Rights
//
// Write on the transactional id, and Write on the topics. Describe is needed for both; Kafka grants
// it together with Write. A missing right comes back at once as driver.ErrDenied, with its name.
//
// # What it costs
//
// A client and its connections for each term, and requests for each write. On three brokers that
// shared two busy cores (go test -tags integration -run '^$' -bench RealFenced ./test/kafka) Open
// took 28 ms at the median and a transaction of one record 33 ms, or 59 ms right after another. Nil
// from Produce means that the commit is decided; readers see the records a few milliseconds later,
// and a transaction that follows at once waits for that.
//
// # Limits
//
// Kafka 2.5 or newer, better 4.0 with transaction.version 2, where brokers themselves make sure
// that no late record of an aborted transaction is appended after it. An open transaction delays
// readers of committed records, until the next Open, Close, or kgo.TransactionTimeout, 40 s if not
// set. Brokers forget idle ids after a week; the next write is then refused and repeated as above.
package fenced
