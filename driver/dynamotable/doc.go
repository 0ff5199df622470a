// Package dynamotable holds elections in a table of DynamoDB. Use it where a service runs on AWS
// and has no other store; with package peer, a failover is as fast as on stores that push.
//
//	store, err := dynamotable.New(dynamodb.NewFromConfig(cfg), "elections")
//
// # The table
//
// A table is for elections alone, in one region. Its partition key is "election", a string, and it
// has no sort key. A cell is one item with three more attributes: "record" has the bytes, "version"
// the version, and "table" the id of the table in which the item was written.
//
// # A cell
//
// A compare-and-swap is one PutItem with a condition: the item has the expected version, or there
// is none. DynamoDB checks it at the write. The writer draws a random version of 128 bits for each
// write, so versions never recur. The version also seals the value: members do not trust a value
// that was edited by hand for one lease. A read is one GetItem with ConsistentRead.
//
// The floor of the terms is the service's clock in milliseconds, from the Date of its answers. It
// outlives the item and the table. Date has whole seconds, so it does not cover a record that is
// removed within the second in which its term began. That does no harm, because elections wait out
// a lease after a removal, which is at least 2 s.
//
// # Eras
//
// The era is the table's id (TableId), which a recreated table and a restored one do not share with
// the former table of that name. DynamoDB restores a backup as a new table, so an item that came
// from a backup names another table than the one it is in. Every member waits one lease before it
// claims such an item, also a member that has just started. A write whose expected version was read
// in another era is refused.
//
// The id comes from DescribeTable, which costs nothing: before the first request, then before a
// read if the last answer is 5 s old, before a write if it is a minute old, and after any answer
// that the table is missing. While DescribeTable does not answer, the last id stays in use, so an
// outage of that interface costs no lease. If the last answer is a minute old, each item that is
// read is unproven: the table could have been restored since. A table that is deleted and restored
// in less than this minute could pass for the former one.
//
// # Global tables
//
// A table with replicas in other regions is refused by driver.ErrUnfit: each region checks
// conditions against its own copy, and the last write wins. Tables with strong consistency across
// regions are refused, too: each replica has an id of its own, so their eras would differ. A
// replica that is added later is noticed at the next look at the table.
//
// # Conditions
//
// Before its first write, a [Store] checks that the server evaluates conditions, by two or three
// writes to the item .tenure-probe, two of which the server must refuse. If it applies one of them,
// every write returns driver.ErrUnfit. The item stays.
//
// # Outcomes
//
// A write returns driver.ErrConflict only for ConditionalCheckFailedException, and driver.ErrDenied
// for a missing right or invalid credentials. Every other answer leaves the outcome open, also
// those of a busy service: ThrottlingException, ProvisionedThroughputExceededException and
// RequestLimitExceeded have the status 400. The client library's retries are off: a retry of a
// request that was applied and lost its answer would come back as a conflict with itself. Redirects
// are not followed. A call ends with its context.
//
// # Rights
//
// A candidate needs dynamodb:DescribeTable, dynamodb:GetItem and dynamodb:PutItem on the table, and
// an observer the first two. If the rights are for single items (dynamodb:LeadingKeys), they must
// include .tenure-probe. [Store.Keys] uses dynamodb:Scan.
//
// # Cost
//
// A renewal is one write, and a read of the election one strongly consistent read. Refused writes
// are billed, too. A write has one unit for each KiB of the item: one, unless metadata are long.
package dynamotable
