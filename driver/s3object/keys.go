package s3object

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Keys returns the sorted keys of all objects under the prefix, by one request for each thousand.
// It needs s3:ListBucket. It leaves out objects without content, and names that CheckKey refuses.
// Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	var all []string
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return nil, fmt.Errorf("s3object: list the objects of %s: %w", s.place(""), s.explain(listing, err))
		}
		for _, o := range page.Contents {
			key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix)
			if aws.ToInt64(o.Size) > 0 && s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
