// Package peer sends a leader's changes straight to its followers, for stores that cannot push. Use
// it on object storage and SQL databases to save reads and to fail over sooner.
//
//	s, err := peer.New(objects, peer.Config{Networks: networks})
//	go s.Serve(listener)
//	e, err := tenure.New(s, "billing", tenure.Config{Address: "10.0.0.7:8443"}) // of listener
//
// Each follower keeps one stream open to the leader of each election. The leader sends each renewal
// and the release as soon as the store has confirmed them. So followers of a living leader read
// nothing. They act on a release after one round trip, and on a crash when the lease has expired by
// their own clock. The store still decides: a push is a hint. It can start a follower's timer or
// show a release. But a claim is still a compare-and-swap, and a follower whose timer has expired
// still reads first. If peers cannot reach one another, elections go on by reading.
//
// # What is served
//
// Config.Path answers 200 with the bytes of the record while this process leads and its lease is
// valid by its own clock, otherwise 404. The leader counts its lease from before it sent the write,
// and stops answering Config.Margin before the end. If a write got no answer, the record confirmed
// before it stays served, at most until its own time is over. See [Store.Handler].
//
// # What is followed
//
// Each read of the store shows the leader's address and incarnation. A follower follows no record
// without an address, nor one whose leader does not use this package. It does not follow a leader
// in its own process either: watches there are called directly. Following one key takes one
// goroutine and one stream; over TLS many streams share a connection. If a stream breaks, the
// follower reads once. It reconnects at once, after 100 ms, after 1 s, and then every Config.Retry,
// as long as the last record that was read names that leader.
//
// # Trust
//
// The store is the root of trust: a process that may write a record may lead. The incarnation in a
// record is a public key (Ed25519), drawn by the leader's Store, which never shows the private one.
// A follower sends a fresh random challenge with each request. Each event carries a signature over
// the challenge, the event's place in the stream, the name of the election, the version and the
// record's bytes. If an event is not signed by the incarnation that the store named, or names
// another one itself, the follower drops the event and the connection, and reports that to
// Config.OnError. That holds over plain HTTP as well. TLS adds privacy, and client certificates
// restrict the clients. Without client certificates any client that reaches the port can read the
// leader of each election, with the address and metadata of the record, and see when it renews and
// releases. Such clients can take streams and connections up to the bounds; from many addresses
// they can take all. Followers that find no place read the store instead, which costs time and
// requests but never safety. In particular:
//
//   - Another process has got the leader's address, by accident or on purpose: it has no key, and
//     so cannot prove its events.
//   - An old event is played back: it was signed for another challenge, or for another place in
//     this stream.
//   - An intermediary can delay and cut events, as any network can, and read them without TLS. It
//     can neither change nor invent one. A delayed renewal makes followers wait longer, never
//     shorter, and silence makes them read the store.
//   - The leader of another election, or a former leader of this one, sends its events: it has
//     another key. A process that leads several elections signs the name of each.
//   - A leader serves false records under its own key: a follower accepts only the format and
//     limits of records, and the term, the lease and the clock bound that the store has shown.
//     Anything else causes a read and is forgotten. So at worst such a leader keeps its followers
//     waiting for as long as it goes on.
//   - A record names an address in order to make followers connect there: they dial only addresses
//     within Config.Networks, checked after a name is resolved. They use no redirects, proxies or
//     cookies.
//   - Followers open streams and do not read them: a write to one waits for at most Config.Timeout,
//     and never delays the leader's renewals. One election has at most Config.MaxStreams followers,
//     and at most Config.MaxStreamsPerAddress from one address. Serve holds at most
//     Config.MaxConnections open, and half of them from one address.
//   - A peer sends without end: lines and events are bounded, and the first proof is due within
//     Config.Timeout.
//
// A leader signs for every client, but only the record that it holds. Each signed message begins
// with a prefix that nothing else uses.
package peer
