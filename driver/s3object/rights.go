package s3object

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/tenure-go/tenure/driver"
)

// CheckRights returns an error that wraps driver.ErrDenied if the right to write the object is
// missing. It asks to complete a multipart upload that was never begun. That needs the right to put
// the object, and leaves nothing that a server could store. It does not use a conditional put,
// because a server that ignores the conditions of writes would overwrite the object. A server
// without uploads in parts cannot tell; its answer counts as yes.
//
// If this store has not yet checked whether its server heeds conditions, CheckRights does that,
// too. So a follower need not do it when it is elected. Then the error wraps driver.ErrUnfit if the
// server ignores one, and driver.ErrDenied if the right to the object of that check is missing.
//
// CheckRights returns the error of CheckKey, and any other error if there was no answer.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	err := s.ready(ctx, key)
	if err == nil {
		err = s.askForRight(ctx, key)
	}
	if err == nil {
		err = s.requireConditions(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("s3object: check the right to write %s: %w", s.place(key), err)
	}
	return nil
}

func (s *Store) askForRight(ctx context.Context, key string) error {
	_, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:   &s.bucket,
		Key:      aws.String(s.prefix + key),
		UploadId: aws.String("tenure-asks-whether-it-may-write"),
		// Some policies demand a condition.
		IfMatch: aws.String(header(noVersion, s.form.isBare())),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{
			{ETag: aws.String(string(noVersion)), PartNumber: aws.Int32(1)},
		}},
	}, once)
	if err == nil {
		return nil
	}
	switch a := look(err); {
	case a.status == 0:
		return unanswered(err)
	case a.denied():
		return s.explain(writing, err)
	}
	return nil
}

// denied reports whether S3 itself refuses this user: a proxy that lets no POST pass answers 403 as
// well, but with another code.
func (a answer) denied() bool {
	return a.code == "AccessDenied" || slices.ContainsFunc(remedies, func(r remedy) bool {
		return r.denied && slices.Contains(r.codes, a.code)
	})
}

var _ driver.RightsChecker = (*Store)(nil)
