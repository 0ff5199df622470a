// Package s3object holds elections in a bucket of S3 or of a server that speaks its protocol. Use
// it where there is a bucket and no other store; with package peer, a failover is as fast as on
// NATS.
//
//	store, err := s3object.FromEnvironment(ctx, "my-bucket", s3object.WithPrefix("elections"))
//
// # What it relies on
//
// A cell is one object, its version is the object's ETag without quotes, and a compare-and-swap is
// one PutObject with If-None-Match: * where there was no object, and with If-Match where there was
// one. Many servers accept these headers and ignore them, or check them and then write, so that two
// of twenty writers win. [Store.Inspect] tests them with races; run it once against every server
// that is not S3 itself.
//
// An ETag is often a hash of the content. That is enough, because elections never write the same
// bytes twice, and do not rely on the ETag of an object that was put where there was none: a proxy
// may deliver that request again.
//
// The floor of the terms is the server's clock in milliseconds, from the Date of its answers. That
// has whole seconds, so the floor stands still for one: it does not cover a record that is removed
// within the second in which its term began. Elections wait out a lease after a removal, which is
// at least two seconds. The clocks of several front ends of one store may be apart by the same
// lease, less one second.
//
// # What it costs
//
// A renewal is one PUT, a read of the election one GET. With n followers, that is 86,400 s / Renew
// PUTs and at most n * 86,400 s / Poll GETs a day, with any answer: refused writes are billed, too.
// An inspection takes some 1,130 requests, and 1,030 of them are PUTs: about half a cent at S3's
// list price.
//
// # Rights
//
// A candidate needs these, and an observer the first two:
//
//	s3:GetObject     on arn:aws:s3:::BUCKET/PREFIX/*
//	s3:ListBucket    on arn:aws:s3:::BUCKET, perhaps with the condition s3:prefix = PREFIX/*
//	s3:PutObject     on arn:aws:s3:::BUCKET/PREFIX/*
//
// Nothing is listed, but without s3:ListBucket S3 answers a read of a missing object by 403 instead
// of 404. That is never taken for absence: it comes back as driver.ErrDenied and names this right.
// [Store.Inspect] is better with s3:DeleteObject on BUCKET/PREFIX/.tenure-probe-* and
// s3:GetBucketVersioning on BUCKET, and works without.
//
// # Calls
//
// A call is one request. The client library's retries are switched off: a retry of a request that
// was applied and lost its answer would come back as a conflict with itself. Checksums are sent and
// checked only where S3 requires them, because other servers refuse them. A call ends with its
// context; one without a deadline waits for as long as the server does.
//
// # Quotes
//
// Ceph's gateway and some services take the ETag in If-Match without quotes, and refuse each one
// with quotes. A store finds out by itself. A swap may be refused, and a later read show the very
// version that it expected. Then the store tries the other form on an object that it makes for
// that, by a PUT that must be refused. If it is refused, the store uses the other form from then
// on, for all keys. A server that ignores headers it does not understand never gets there, since
// its writes would be unconditional. Once a swap was applied in one form, the store keeps that
// form. [WithUnquotedETags] saves the detour.
//
// # Limits
//
// The shortest lease is 2 s. Some services allow one write a second for each object, which is
// enough. Services without conditional writes cannot hold elections; the error names those that
// answer 501. A bucket with versions keeps each renewal as a version, and one with Object Lock
// costs too much for elections.
package s3object
