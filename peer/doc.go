// Package peer lets followers on a store that cannot push receive changes from the leader itself.
// Use it on object storage and SQL databases to save reads and to fail over sooner.
//
//	s, err := peer.New(objects, peer.Config{Networks: networks})
//	go s.Serve(listener)
//	e, err := tenure.New(s, "billing", tenure.Config{Address: "10.0.0.7:8443"}) // of listener
//
// The leader holds one stream open to each follower. It sends each renewal and the release as soon
// as the store has confirmed them. So followers of a living leader read nothing. They act on a
// release after one round trip, and on a crash when the lease has expired by the follower's clock.
// The store still decides: a push is a hint. It can start a follower's timer or show a release, but
// a claim is still a compare-and-swap, and an expired timer is still followed by a read. If peers
// cannot reach one another, elections go on by reading.
//
// # What is served
//
// Config.Path answers 200 with the bytes of the record while this process leads and its lease is
// valid by its own clock, less Config.Margin and counted from before the write was sent; 404
// otherwise. If a write got no answer, the record confirmed before it stays served until its own
// time is over. See [Store.Handler].
//
// # What is followed
//
// Each read of the store shows the leader's address and incarnation. A record without an address,
// or of an election that has no peers, is not followed. A record of this same process is not
// followed either: its watches are called directly. Following one key takes one goroutine and one
// stream; over TLS many streams share a connection. A stream that breaks causes one read. It is
// reconnected at once, after 100 ms, after 1 s, and then every Tuning.Retry, as long as the last
// record that was read names that leader.
//
// # Trust
//
// The store is the root of trust: a process that may write a record may lead. The incarnation in a
// record is a public key (Ed25519), drawn by the leader's Store, which never shows the private one.
// A follower sends a fresh random challenge with each request. Each event carries a signature over
// the challenge, the event's place in the stream, the name of the election, the version and the
// record's bytes. An event is dropped with its connection, and reported to Config.OnError, if it is
// not signed by the incarnation that the store named, or if it names another one itself. That holds
// over plain HTTP as well. TLS adds privacy, and client certificates restrict the clients. Over
// plain HTTP, and over TLS without client certificates, any client that reaches the port can read
// the leader of each election, with the address and metadata of the record, and see when it renews
// and releases. Such clients can take streams and connections up to the bounds; from many addresses
// they can take all. Followers that find no place read the store instead, which costs time and
// requests and never safety. In particular:
//
//   - Another process got the leader's address, by accident or on purpose: it has no key, and
//     proves nothing.
//   - An old event is played back: it was signed for another challenge, or for another place in
//     this stream.
//   - An intermediary can read (without TLS), delay and cut, as any network can, but neither change
//     nor invent. A delayed renewal makes followers wait longer, never shorter, and silence makes
//     them read the store.
//   - The leader of another election, or of this one at another time, has another key. A process
//     that leads several elections signs the name of each.
//   - A leader that serves nonsense under its own key is held to the format and limits of records,
//     and to the term, the lease and the clock bound that the store has shown. Anything else causes
//     a read and is forgotten. So at worst it keeps its followers waiting for as long as it goes
//     on.
//   - A record names an address in order to make followers connect there: only addresses within
//     Config.Networks are dialled, whatever a name resolves to. Redirects, proxies and cookies are
//     not used.
//   - Followers ask and then do not listen: a write to one waits for at most Config.Timeout, and
//     never delays the leader's renewals. There are at most Config.MaxStreams of them for one
//     election, Config.MaxStreamsPerAddress of these from one address, and Serve holds at most
//     Config.MaxConnections open, half of them from one address.
//   - A peer sends without end: lines and events are bounded, and the first proof is due within
//     Config.Timeout.
//
// A leader signs for every client, but only the record that it holds, under a prefix of its own.
package peer
