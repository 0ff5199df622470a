// Package kafkalog holds elections in a topic of Kafka, without consumer groups and without
// transactions. Use it where a service already talks to Kafka.
//
//	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
//	store, err := kafkalog.Open(ctx, connection, "billing.elections")
//
// # What it relies on
//
// Kafka has no compare-and-swap, but all readers see a partition's log in the same order. Every
// write is appended, and the order decides which writes take effect. All readers decide alike, from
// the earlier records alone. A record states how far its writer had read the log, and which record
// it replaces, if its writer saw one.
//
//   - A record takes no effect if more than 4,096 records stand between the last one that its
//     writer had read and itself.
//   - A record that replaces another takes effect if that other one is the last record of its key
//     that took effect, or if the reader has seen none of its key take effect.
//   - A record that replaces none takes effect if no record of its key, effective or not, stands
//     between the last record that its writer had read and itself.
//
// So a write has no effect if it is late, if a proxy or a client repeats it, or if its client is
// behind. An acknowledgment does not mean success: a write counts when it was read back. A lost
// acknowledgment costs nothing.
//
// The version of a cell is the offset of its record, together with a random number that the writer
// drew. The floor of the terms is the end of the log. All elections of a topic are in its partition
// 0, even if it has others. docs/adr/0008-kafka-log.md explains why, and why a new reader need not
// read the whole log.
//
// # The topic
//
// [Open] creates a topic that does not exist: one partition on three brokers, two of which must
// store a write; cleanup.policy delete, retention.ms -1, retention.bytes 64 MiB, segment.bytes 16
// MiB, message.timestamp.type LogAppendTime, no unclean elections. Open refuses an existing topic
// with compaction, with retention by time, with retention.bytes below 16 MiB, or with unclean
// elections, because each of these removes records that decide about later ones. It also refuses
// max.message.bytes below 64 KiB, too few for the renewals of many elections. [Store.Inspect] names
// these and lesser faults, with the remedy.
//
// The log stays below retention.bytes plus two segments. The record of a live election stays near
// the end, since its leader renews it. Kafka removes the record of an idle election when renewals
// of other elections have filled that space. Then its cell is absent, so candidates wait for a
// lease, and its terms go on above the floor. A lease must be short compared with the time in which
// 64 MiB are written: at 450 bytes a record, a thousand elections that renew every 5 s take 12
// minutes. Inspect compares them.
//
// A candidate may claim a new election at once, until the partition's leader changes for the first
// time. After that, it first waits one lease: no broker can vouch for the records of other brokers.
//
// # What it costs
//
// A store is one client, one goroutine and one fetch that waits for new records: 12 requests a
// minute while there are none, and one for each record, or for several that come together. A
// renewal is one produce request, which also carries those of other elections that are due. A read
// asks the leader where the log ends. A thousand elections, or ten thousand, share this. Every
// member reads the whole topic, about 450 bytes for every renewal of any election. Use several
// topics if that is too much.
//
// # Rights
//
// A candidate needs Read, Write and Describe on the topic, an observer Read and Describe. Create on
// the topic lets Open create it, and DescribeConfigs lets Open and Inspect read its settings. A
// missing right comes back as driver.ErrDenied.
//
// # Calls
//
// A call is one attempt, and ends with its context. A write that is on its way by then may still be
// appended; it takes effect only if no other write came first. If a topic was recreated or
// truncated, all calls under way fail. Then the store reads the log again and trusts nothing of the
// old one. A Store's floor never falls within one topic. In a recreated topic, candidates that knew
// the old one go on above its terms. A new process may lead with a lower term. While an old leader
// is cut off, a new process could also lead beside it. So before you delete a topic, stop all
// candidates and wait one lease; then reset the tokens that resources remember. docs/kafka.md shows
// how to keep the tokens rising.
//
// # Limits
//
// The shortest lease is 1 s. All candidates of a topic must use this package. The store skips
// records of other programs, and [Store.Inspect] reports them; Open refuses a topic that holds only
// such records, or records of a later format. Brokers and client must support the ids of topics,
// which came with Kafka 2.8: Open refuses older brokers, and kgo.MaxVersions below that.
package kafkalog
