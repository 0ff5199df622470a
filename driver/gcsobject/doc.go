// Package gcsobject holds elections in a bucket of Google Cloud Storage. Use it where there is a
// bucket and no other store; with package peer, a failover is as fast as on NATS.
//
//	store, err := gcsobject.FromEnvironment(ctx, "my-bucket", gcsobject.WithPrefix("elections"))
//
// # Version, floor and era
//
// A cell is one object, and its version is the object's generation. A compare-and-swap is one
// upload over the JSON interface with ifGenerationMatch: 0 if there is no live object. The XML
// interface is documented to heed such conditions on reads only, and is not used.
//
//   - Each new content of an object gets a generation of its own, also after the object was deleted
//     and created again. A change of metadata keeps the generation and the content.
//   - Generations are not documented to increase, so they are no floor. The floor is the server's
//     clock in milliseconds, from the Date of its answers. Date has whole seconds, so the floor
//     does not cover a record that is removed within the second in which its term began. That does
//     no harm, because elections wait out a lease after a removal, which is at least 3 s.
//   - With object versioning, a deleted object leaves noncurrent versions, which conditions do not
//     see: the cell is absent. A noncurrent or soft-deleted version that an operator restores is a
//     new object with a new generation, and shows an old state under it. Stop all candidates
//     before that: a restored release shows no leader, while the old one trusts its lease.
//   - There is no era. A bucket that was deleted and recreated under the same name has objects with
//     other generations, as far as Google documents them. A soft-deleted bucket that is restored
//     has its old objects in their old generations, and nothing newer.
//
// Cloud Storage replaces objects atomically, and a read sees the last acknowledged write, in
// buckets of one region and of several. If a region of several fails, a record may be unreadable
// until its content has arrived in the others. That costs the leader its lease, but no write is
// taken back.
//
// # Costs and the pace of writes
//
// A renewal is one upload (class A), and a read of the election one download (class B). Refused
// writes are billed, too. Cloud Storage takes about one write a second for each object, and answers
// others by 429. So the shortest lease is 3 s, whose renewals are 1 s apart, and [Store.Inspect]
// warns below 6 s: a release or a second try soon after a renewal may then be refused.
//
// # Rights
//
// A candidate needs these permissions on the bucket, which the role Storage Object User contains:
//
//	storage.objects.get
//	storage.objects.list      without it a missing object is reported as a missing right
//	storage.objects.create
//	storage.objects.delete    to replace an object
//
// An observer needs the first two (Storage Object Viewer). [Store.Inspect] also reads the settings
// of the bucket with storage.buckets.get, and checks less without it.
//
// # Calls
//
// A call is one request, except as below under Conditions. No request is repeated, and no redirect
// is followed: a repetition of an upload that was applied and lost its answer would come back as a
// conflict with itself. The package uses package oauth2 for credentials, and makes its four kinds
// of requests itself. That adds 0.9 MB to a program. The generated client
// google.golang.org/api/storage/v1 adds 9.4 MB and cloud.google.com/go/storage 27.8 MB.
//
// Records carry Cache-Control: no-store, since Google caches public objects.
//
// # Credentials
//
// [FromEnvironment] finds application default credentials: GOOGLE_APPLICATION_CREDENTIALS, those of
// gcloud, or the service account of the machine, container or workload identity. It replaces an
// access token some minutes before its end, and uses the old one as long as it is valid. It reads
// files again for each token.
//
// # Conditions
//
// Before its first write, a [Store] checks that its server heeds ifGenerationMatch, by three
// uploads at most, or two and a download. The server must refuse two uploads. They go to the object
// .tenure-probe-conditions in the folder of the election, which stays there. If the server ignores
// a condition, every write returns driver.ErrUnfit, and no candidate is elected. Google heeds them;
// emulators and proxies may not. A candidate that follows another one makes this check early, in
// CheckRights.
package gcsobject
