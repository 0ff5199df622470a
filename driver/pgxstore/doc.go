// Package pgxstore holds elections in a table of PostgreSQL, as package sqlstore does, and pushes
// changes: followers of a healthy leader read nothing, and the next leader starts as soon as the
// old one has released, or when its lease has expired. Use it where pgx is the driver.
//
//	config, err := pgx.ParseConfig("postgres://user@host/db")
//	store, err := pgxstore.New(stdlib.OpenDB(*config), config)
//
// # How it pushes
//
// Each write also sends a notification (NOTIFY). One connection listens for all watches of a store,
// whatever their number. It is opened with the first watch and closed with the last. A lost
// connection is replaced, and then every watch causes one read, because notifications may have been
// missed.
//
// Everybody who may connect to the database can send such notifications, and read them. So they
// only postpone a read or cause one ([driver.Entry.Unverified]): a false one can end no lease and
// cause no claim. At most 20 notifications per key and second reach its election at once. Of the
// others the last does at the end of the second, and the election reads.
//
// # What it needs
//
// The listening connection must reach the server itself. A pooler that gives sessions away by
// transaction, such as PgBouncer, loses notifications, and may leave a LISTEN behind on another
// client's connection. So Watch refuses every pooler, before it listens: see [ErrPooled]. The pool
// for reads and writes may go through one.
//
// All members of an election should use this package, or [sqlstore.WithNotifications]. Others do
// not notify, so members that listen to nothing read after a silence.
package pgxstore
