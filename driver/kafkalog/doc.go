// Package kafkalog holds elections in a topic of Kafka, without consumer groups and without
// transactions. Use it where a service already talks to Kafka.
//
//	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
//	store, err := kafkalog.Open(ctx, connection, "billing.elections")
//
// # What it relies on
//
// Kafka has no compare-and-swap, but the order of a partition's log is the same for all. Every
// write is appended, and the order decides which writes take effect; all readers decide alike, from
// the earlier records alone. A record states how far its writer had read the log, and which record
// it replaces, if it saw one.
//
//   - A record that lands more than 4,096 records after the last one that its writer had read takes
//     no effect.
//   - One that replaces a record takes effect if that record is the last of its key that did, or
//     none is known.
//   - One that replaces none takes effect if no record of its key, effective or not, stands between
//     the last record that its writer had read and itself.
//
// So a write that is delayed, doubled or sent by a client that is behind has no effect, even if a
// proxy or client sends it again. An acknowledgment does not mean success: a write counts when it
// was read back. A lost acknowledgment costs nothing.
//
// The version of a cell is the offset of its record with a number that its writer drew; the floor
// of the terms is the end of the log. All elections of a topic are in its partition 0, whatever
// other partitions it has. docs/adr/0008-kafka-log.md explains why, and why a new reader need not
// read all of it.
//
// # The topic
//
// [Open] creates a topic that does not exist: one partition on three brokers, two of which must
// have a write; cleanup.policy delete, retention.ms -1, retention.bytes 64 MiB, segment.bytes 16
// MiB, no unclean elections. An existing topic is refused with compaction, with retention by time,
// with little retention by size, or with unclean elections, because each of these removes records
// that decide about later ones. [Store.Inspect] names these and lesser faults, with the remedy.
//
// The log stays below retention.bytes and two segments. Live elections renew their records, so that
// those move with the end. The record of an idle election is removed after that many bytes of other
// elections' renewals. Its cell is absent then, which elections wait out for a lease, and its terms
// go on above the floor. A lease must be short compared with the time in which 64 MiB are written:
// at 450 bytes a record, a thousand elections that renew every 5 s take 12 minutes. Inspect
// compares them.
//
// A new election may be claimed at once until the partition's leader changes for the first time.
// Later a candidate waits once, for a lease: no broker can vouch for the records of other brokers.
//
// # What it costs
//
// A store is one client, one goroutine and one fetch that waits for new records: 12 requests a
// minute while there are none, and one for each record, or for several that come together. A
// renewal is one produce request, which carries those of other elections that are due. A read asks
// the leader where the log ends. A thousand elections, or ten thousand, share this; every member
// reads the whole topic, about 450 bytes for every renewal of any election. Use several topics
// where that is too much.
//
// # Rights
//
// A candidate needs Read, Write and Describe on the topic, an observer Read and Describe. Create on
// the topic lets Open create it, and DescribeConfigs lets Open and Inspect read its settings. A
// missing right comes back as driver.ErrDenied.
//
// # Calls
//
// A call is one attempt. It ends with its context; a write that is on its way by then may still be
// appended, and takes effect only if nothing came before it. A topic that was recreated, or lost
// its end, fails all calls that were under way. The log is then read again, nothing of the old one
// is trusted, and the floor never falls within one topic. In a recreated topic, candidates that
// knew the old one go on above its terms; a new process cannot, so stop all candidates for a lease
// before you delete a topic.
//
// # Limits
//
// The shortest lease is 1 s. All candidates of a topic must use this package: records of other
// programs are skipped, and reported by [Store.Inspect]; Open refuses a topic that holds nothing
// else. Brokers must name the ids of topics, which is Kafka 2.8, and so must the client:
// kgo.MaxVersions below that is refused, as are such brokers.
package kafkalog
