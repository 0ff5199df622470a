// Package fenced writes to Kafka on behalf of a leader, such that the brokers refuse it once another one has taken over.
//
//	p, err := fenced.Open(ctx, term, []kgo.Opt{kgo.SeedBrokers("kafka-1:9092"), kgo.DefaultProduceTopic("payments")})
//	...
//	err = p.Produce(ctx, records...)
//
// A lease cannot stop a process that was frozen between looking at it and writing. Transactions of Kafka can: brokers hold one
// epoch for each transactional.id, which is the election's name here. Opening a producer raises it, aborts what was open, and
// whatever carries an older epoch is refused from then on, record or commit, however late it arrives. Any store can hold the election.
//
// # What is guaranteed
//
//   - In each partition every record committed by an older term stands before every one of a newer term.
//   - When Open has returned nil, the earlier terms have committed all that they ever will. A new leader that reads
//     committed records up to the end then knows what they did, all of it.
//   - A call of Produce is one transaction: readers of committed records see all its records, in all partitions, or none.
//   - An error means that nothing was or will be committed, but for ErrUnknown, which says that it does not know.
//   - A deposed leader never writes under an epoch that it was given too late.
//
// This is for readers with isolation.level read_committed (kgo.FetchIsolationLevel(kgo.ReadCommitted())). Others see aborted
// records as well, but these too stand before those of newer terms. Which order brokers keep is in docs/adr/0010-fenced-writes.md.
//
// A commit that is on its way when the lease ends may land later, if it does so before the next leader's Open. So records of
// the old term may become visible while a new leader exists that has not opened its producer yet: it opens first, then
// reads, then works.
//
// # Who obtains a producer, and when
//
// Whoever asked last has the epoch. A leader asks only while enough of its lease is left, and looks again after the answer and
// before each transaction and each commit. A request that a deposed leader sent in time, but that arrives after the new
// leader's, takes the epoch from the new one all the same. The old one sees that its lease is over and does nothing with it; the new
// one is refused at its next write, of which nothing is committed, and as its lease is valid it asks again and repeats the
// transaction, within the same call of Produce (or returns ErrUnknown, if the brokers were about to abort when it sent the
// commit). Nobody asks in the background, and who does not lead never does. One
// leader does so at most three times a minute; after that it returns ErrFenced. Two programs that by mistake share a
// transactional.id thus come to a stop and are told, rather than abort each other for ever.
//
// # What is not guaranteed
//
// The look after the answer is at this process's clock. If all its clocks stood still (a virtual machine frozen, then resumed) while its
// request for an epoch overtook the next leader's, it does not know, and writes as if it led. The order is broken then, and the token shows it: each
// record carries it in the header tenure-token, and readers may skip records whose token is lower than one they have seen in the
// partition. Any other pause, in any other place, is covered.
//
// Nor is there any order between writes through a Producer and those by other means, and nothing is exactly once: a caller
// that repeats a call after ErrUnknown may write twice. Offsets of consumer groups cannot be committed in the same transaction.
//
// # Rights
//
// Write on the transactional id, and Write on the topics. Kafka takes Describe, which is needed for both, as given with Write. A
// missing right comes back at once as driver.ErrDenied, with its name.
//
// # What it costs
//
// A client and its connections for each term, and requests when something is written. On three brokers that shared two busy
// cores (go test -tags integration -run '^$' -bench RealFenced ./test/kafka) Open took 28 ms at the
// median and a transaction of
// one record 33 ms, or 59 ms right after another. Nil from Produce means that the commit is decided; readers see the records a
// few milliseconds later, and a transaction that follows at once waits for that.
//
// # Limits
//
// Kafka 2.5 or newer, better 4.0 with transaction.version 2, where brokers themselves see to it that no late record of an aborted transaction
// is appended after it. An open transaction holds readers of committed records up, until the next Open, Close, or
// kgo.TransactionTimeout, 40 s if not set. Idle ids are forgotten by brokers after a week; the next write is then
// refused and repeated as above.
package fenced
