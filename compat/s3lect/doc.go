// Package s3lect is for programs that come from S3lect, the election over object storage: its
// two-method storage, its lockfile, and its API, all over Tenure.
//
//   - [NewS3Elector] and its types are S3lect's API. A program moves by changing its import.
//   - [FromStorage] holds any election in a storage that was written for S3lect; [ToStorage] is the
//     way back.
//   - [Legacy] lets candidates share one lockfile with S3lect processes while a fleet moves over.
//
// docs/s3lect.md has the procedure step by step, and every difference.
package s3lect
