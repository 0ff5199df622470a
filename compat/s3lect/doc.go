// Package s3lect is for programs that use S3lect, a library for elections over object storage, and
// move to Tenure. It has S3lect's API, and works with its storages and its lockfile.
//
//   - [NewS3Elector] and its types are S3lect's API. A program moves by changing its import.
//   - [FromStorage] makes a store for any election from a storage that was written for S3lect;
//     [ToStorage] makes such a storage from a store.
//   - [Legacy] lets candidates share one lockfile with S3lect processes while a fleet moves over.
//
// docs/s3lect.md describes the move step by step, and lists each difference.
package s3lect
