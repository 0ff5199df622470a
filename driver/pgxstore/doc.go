// Package pgxstore holds elections in a table of PostgreSQL, as package sqlstore does, and pushes
// changes. Followers of a healthy leader read only once in ten leases, and the next leader starts
// as soon as the old one has released, or when its lease has expired. Use it where pgx is the
// driver.
//
//	config, err := pgx.ParseConfig("postgres://user@host/db")
//	store, err := pgxstore.New(stdlib.OpenDB(*config), config)
//
// # How it pushes
//
// Each write also sends a notification (NOTIFY). One connection listens for all watches of a store,
// however many they are. The first watch opens it, and the last one closes it. The store pings it
// every 30 s, and after 6 s without a notification. It replaces a connection that is lost. Then
// every watch causes one read, because notifications may have been missed. If the first attempt to
// replace it fails, elections poll until one succeeds ([driver.Entry.Lost]).
//
// Every user that may connect to the database can send such notifications, and read them. So they
// only postpone a read or cause one ([driver.Entry.Unverified]): a false one can end no lease and
// cause no claim. Of the notifications of one key, the first 20 in a second reach the election at
// once. If there are more, only the last one reaches it, at the end of the second, and the election
// reads.
//
// # What it needs
//
// The listening connection must reach the server itself. A pooler that gives sessions away by
// transaction, such as PgBouncer, loses notifications, and may leave a LISTEN behind on another
// client's connection. So Watch refuses every pooler before it listens: see [ErrPooled]. Reads and
// writes may go through a pooler.
//
// All members of an election should use this package, or [sqlstore.WithNotifications]. Other
// members do not notify, so listeners read after a silence.
package pgxstore
