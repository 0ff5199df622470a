// Package azureblob holds elections in a container of Azure Blob Storage. Use it where there is a
// storage account and no other store; with package peer, a failover is as fast as on NATS.
//
//	store, err := azureblob.FromEnvironment("myaccount", "my-container", azureblob.WithPrefix("elections"))
//
// # Version, floor and era
//
// A cell is one block blob, and its version is the blob's ETag. A compare-and-swap is one Put Blob
// with If-Match, or with If-None-Match: * if there is no blob. The service checks the condition and
// replaces the blob in one step.
//
//   - Each write of a blob gets another ETag, also after the blob was deleted and created again. A
//     change of metadata also gives another ETag; a leader whose renewal is refused because of one
//     reads its own record and renews again.
//   - ETags have no order, so they are no floor. The floor is the server's clock in milliseconds,
//     from the Date of its answers. Date has whole seconds, so the floor does not cover a record
//     that is removed within the second in which its term began. That does no harm, because
//     elections wait out a lease after a removal, which is at least 2 s.
//   - There is no era. A container or an account that was deleted and recreated has blobs with
//     other ETags, as far as Microsoft documents them. An earlier version, a snapshot, a
//     soft-deleted blob or a point in time that an operator restores shows an old state. Stop all
//     candidates before that: a restored release shows no leader, while the old one trusts its
//     lease.
//   - An account with geo-redundancy (GRS, GZRS and those with read access) copies writes to the
//     other region later. An unplanned failover takes back the last acknowledged writes, and
//     nothing in the blob shows that. [Store.Inspect] warns. Stop all candidates for one lease
//     during the failover. The secondary endpoint, which may lack writes, is refused.
//
// # Leases of Azure
//
// The service has leases of its own on blobs, of 15 to 60 s. They are not used. Every client with
// the right to write can break one at once, without its id and without notice to the holder. The id
// of a lease is random, so it is no fencing token: a term would need a record beside it. And the
// service shows that a blob is leased, but not for how much longer, so followers would try to
// acquire it, again and again. If another program holds such a lease on a blob of an election, all
// writes are refused (412 LeaseIdMissing). That is no conflict: the version is unchanged. The
// election raises an alarm ([driver.Entry] Notice), and no candidate wins until the lease has
// ended.
//
// # Costs
//
// A renewal is one write operation, and a read of the election one read operation. Refused requests
// are billed, too.
//
// # Rights
//
// A candidate needs the role Storage Blob Data Contributor on the container, or a SAS token of the
// container with r and w. An observer needs Storage Blob Data Reader, or r. [Store.Keys] needs l,
// too.
//
// # Calls
//
// A call is one request, except as below under Conditions. The retries of the client library are
// off, and no redirect is followed: a repetition of a write that was applied and lost its answer
// would come back as a conflict with itself.
//
// In a program that has package net/http, azblob adds 1.3 MB and azidentity 1.7 MB.
//
// # Credentials
//
// [FromEnvironment] takes a connection string, the key of the account, a SAS token, or an identity
// that Microsoft Entra ID knows, such as the managed identity of the machine. An access token is
// replaced some minutes before its end. While that fails or hangs, the old one stays in use. A
// connection string or a SAS token that is replaced needs no restart if it is in a file:
// [WithCredentialsFile].
//
// # Conditions
//
// Before its first write, a [Store] checks that its server heeds conditions, by three writes at
// most, or two and a read. The server must refuse two writes. They go to the blob
// .tenure-probe-conditions in the folder of the election, which stays there. If the server ignores
// a condition, every write returns driver.ErrUnfit, and no candidate is elected. Azure heeds them;
// proxies and gateways may not. A candidate that follows another one makes this check early, in
// CheckRights.
package azureblob
