// Package s3object holds elections in a bucket of S3 or of a server that speaks its protocol. Use
// it where there is a bucket and no other store; with package peer, a failover is as fast as on
// NATS.
//
//	store, err := s3object.FromEnvironment(ctx, "my-bucket", s3object.WithPrefix("elections"))
//
// # What it relies on
//
// A cell is one object, and its version is the object's ETag without quotes. A compare-and-swap is
// one PutObject, with If-None-Match: * if there was no object, and with If-Match if there was one.
// Some servers ignore these headers. A store finds that out before its first write, and writes
// nothing there: see Conditions. Other servers check them and write in two steps, so that two of
// twenty writers win. [Store.Inspect] tests that with races; run it once against every server that
// is not S3 itself.
//
// An ETag is often a hash of the content. That is enough, because elections never write the same
// bytes twice. The first record of a new object is the exception: a proxy may deliver the request
// that created it again after a removal, with the same ETag. So elections do not rely on that ETag.
//
// The floor of the terms is the server's clock in milliseconds, from the Date of its answers. Date
// has whole seconds, so the floor can be a second late: it does not cover a record that is removed
// within the second in which its term began. That does no harm, because elections wait out a lease
// after a removal, which is at least 2 s. For the same reason the clocks of several front ends of
// one store may differ by up to the lease minus 1 s.
//
// # What it costs
//
// A renewal is one PUT, and a read of the election one GET. With n followers, that is 86,400 s /
// Renew PUTs and at most n * 86,400 s / Poll GETs a day. Refused writes are billed, too. The check
// of conditions takes two or three PUTs in the life of a Store. An inspection takes some 1,130
// requests, and 1,030 of them are PUTs: about half a cent at S3's list price.
//
// # Rights
//
// A candidate needs these, and an observer the first two:
//
//	s3:GetObject     on arn:aws:s3:::BUCKET/PREFIX/*
//	s3:ListBucket    on arn:aws:s3:::BUCKET, perhaps with the condition s3:prefix = PREFIX/*
//	s3:PutObject     on arn:aws:s3:::BUCKET/PREFIX/*
//
// If the rights are for single objects, they must include the object .tenure-probe-conditions
// beside those of the elections: see Conditions.
//
// Elections list nothing, but without s3:ListBucket S3 answers a read of a missing object by 403
// instead of 404. The store does not take that for absence: it returns driver.ErrDenied and names
// this right. [Store.Inspect] also uses s3:DeleteObject on BUCKET/PREFIX/.tenure-probe-* and
// s3:GetBucketVersioning on BUCKET, and checks less without them.
//
// # Calls
//
// A call is one request, except as below under Conditions and Quotes. The client library's retries
// are off: a retry of a request that was applied and lost its answer would come back as a conflict
// with itself. Checksums are sent and checked only where S3 requires them, because other servers
// refuse them. A call ends with its context. Without a deadline it waits as long as the server
// takes.
//
// # Conditions
//
// Before its first write, a [Store] checks that its server refuses writes whose conditions are not
// met: it creates an object twice with If-None-Match: *, and replaces it once with the If-Match of
// an ETag that no object has. If the object exists, the first of these three writes is enough for
// the first two. The object is .tenure-probe-conditions in the folder of the election, and stays
// there. A candidate that follows another one makes this check early, in CheckRights; a process
// that only reads does not make it.
//
//   - If the server ignores a condition, every write returns driver.ErrUnfit, and no candidate is
//     elected.
//   - If the right to the object is missing, every write returns driver.ErrDenied. There is no way
//     around the check.
//   - If the server does not answer, or answers that it is busy, the outcome of the write is open.
//     The next write goes on with the check where it ended.
//
// All elections of a Store share one check, so use one Store for all elections of a bucket. The
// check is a part of the call that makes it. It is not repeated in the life of the Store: it does
// not notice if the server is replaced later by one that ignores conditions.
//
// New refuses the addresses of Google Cloud Storage, which is reported to ignore these conditions.
//
// # Quotes
//
// Ceph's gateway and some services accept only an ETag without quotes in If-Match, and refuse each
// one with quotes. A store finds out by itself, after a swap was refused and a later read shows the
// very version that the swap expected. Then the store sends a PUT for .tenure-probe-conditions with
// the other form and a condition that is not met. If the server refuses the PUT, it understands the
// other form, and the store uses that form from then on, for all keys. If the server applies the
// PUT, it ignores a form that it does not understand: writes would be unconditional, so the store
// keeps its first form. Once a swap was applied in one form, the store also keeps that form.
// [WithUnquotedETags] saves the detour.
//
// # Limits
//
// The shortest lease is 2 s. Some services allow one write a second for each object, which is
// enough. Services without conditional writes cannot hold elections; if they answer 501, the error
// says so. An object's name, with the prefix, may have 1,024 bytes, 984 up to its last slash, and
// 255 in each part between slashes. A bucket with versions keeps each renewal as a version, and one
// with Object Lock costs too much for elections.
package s3object
