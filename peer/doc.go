// Package peer lets the members of an election on a store that cannot push hear of changes from the leader itself.
//
//	s, err := peer.New(objects, peer.Config{Networks: networks})
//	go s.Serve(listener)
//	e, err := tenure.New(s, "billing", tenure.Config{Address: "10.0.0.7:8443"}) // where listener is reached
//
// The leader holds one stream open to each follower and tells it of each renewal and of the release
// as soon as the store has confirmed them. So followers of a living leader read nothing, a release
// is acted on after one round trip, and a crash when the lease has run out by the follower's clock.
// The store stays what decides: what a leader tells is a hint. It can start a follower's timer or
// show a release, but a claim is still a compare-and-swap, and a timer that ran out is still
// followed by a read. Where peers cannot reach one another, elections go on by reading.
//
// # What is served
//
// Config.Path answers 200 with the bytes of the record while this process leads and its lease is valid by its own clock,
// less Config.Margin and counted from before the write was sent; 404 otherwise. When a write got no answer, what was
// confirmed before stays served until its own time is over. See [Store.Handler].
//
// # What is followed
//
// Each read of the store that passes through shows the leader's address and incarnation. A record without an address, or
// of an election that has no peers, is not followed, and neither is one of this same process: its watches are told
// directly. Following one key takes one goroutine and one stream; over TLS many streams share a connection. A stream
// that breaks causes one read, and is taken up again at once, after 100 ms, after 1 s, and then every Config.Retry, for as long as the record
// that was read last names that leader.
//
// # Who is believed
//
// The store is the root of trust: whoever may write a record may lead. The incarnation in a record is a public key
// (Ed25519), drawn by the leader's Store, which never shows the private one. A follower sends a
// fresh random challenge with each request. Each event carries a signature over the challenge, the
// event's place in the stream, the name of the election, the version and the record's bytes. What
// is not signed by the incarnation that the store named, or names another one itself, is dropped
// with its connection, and Config.OnError is told. That holds over plain HTTP as well. TLS adds
// privacy, and with client certificates it says who may ask. Over plain HTTP, and over TLS without
// client certificates, anybody who reaches the port can read who leads which election, with the
// address and metadata of the record, when it renews and releases, and can take streams and
// connections up to the bounds, from many addresses all of them. Followers that find no place read
// the store instead, which costs time and requests and never safety. In particular:
//
//   - Another process got the leader's address, by accident or on purpose: it has no key, and proves nothing.
//   - An old event is played back: it was signed for another challenge, or for another place in this stream.
//   - Somebody in between can read (without TLS), delay and cut, as any network can, but neither change nor invent.
//     A delayed renewal makes followers wait longer, never shorter, and silence makes them read the store.
//   - The leader of another election, or of this one at another time, has another key; the same process leading several
//     elections signs the name of each.
//   - A leader that serves nonsense under its own key is held to the format and limits of records, and to the term, the
//     lease and the bound for its clocks that the store has shown. Anything else causes a read and is forgotten. So the
//     worst that it can do is to keep its followers waiting for as long as it goes on.
//   - A record names an address in order to make followers connect there: only addresses within Config.Networks are
//     dialled, whatever a name resolves to. Redirects, proxies and cookies are not used.
//   - Followers ask and then do not listen: a write to one waits for at most Config.Timeout, and never holds up the
//     leader's renewals. There are at most Config.MaxStreams of them for one election, Config.MaxStreamsPerAddress of
//     these from one address, and Serve holds at most Config.MaxConnections open, half of them from one address.
//   - A peer sends without end: lines and events are bounded, and the first proof is due within Config.Timeout.
//
// A leader signs for whoever asks, but nothing else than the record that it holds, under a prefix of its own.
package peer
