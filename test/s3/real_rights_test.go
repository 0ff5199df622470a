//go:build integration

package s3

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealCheckRights: the check of the right to write changes no cell on any server. It succeeds
// with the right, except on servers that ignore the conditions of writes.
func TestRealCheckRights(t *testing.T) {
	eachReal(t, s3d.Kinds(), func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		putReal(t, url, bucket, "cell", "precious")
		store := s3d.NewStore(t, url, bucket)
		before, err := store.Read(wait.Context(t), "cell")
		if err != nil {
			t.Fatal(err)
		}
		careless := server.Kind == s3d.Rclone || server.Kind == s3d.Stub
		for _, key := range []string{"cell", "absent"} {
			if err := store.CheckRights(wait.Context(t), key); errors.Is(err, driver.ErrUnfit) != careless || err != nil && !careless {
				t.Errorf("%s: %v", key, err)
			}
		}
		after, err := store.Read(wait.Context(t), "cell")
		if err != nil || after.Version != before.Version || string(after.Value) != "precious" {
			t.Errorf("the cell holds %q, version %q (%v)", after.Value, after.Version, err)
		}
		if e, err := store.Read(wait.Context(t), "absent"); err != nil || !e.Absent() || e.Version != "" {
			t.Errorf("what was absent holds %q (%v)", e.Value, err)
		}
	})
}

// putReal writes without any condition.
func putReal(t *testing.T, url, bucket, key, value string) {
	t.Helper()
	_, err := s3d.Client(url).PutObject(wait.Context(t), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(value)})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRealLeastRights: the policy of docs/object-storage.md is enough for a candidate. Without its
// part for the object of the check, the candidate writes nothing, and the error names that object.
func TestRealLeastRights(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		store := s3d.NewStore(t, url, bucket, s3d.As(s3d.Stranger, s3d.StrangerSecret))
		allow(t, url, bucket, "elections/billing")
		if err := store.CheckRights(wait.Context(t), "elections/billing"); !deniedCheck(err) {
			t.Errorf("the check of rights: %v", err)
		}
		if _, err := store.CompareAndSwap(wait.Context(t), "elections/billing", "", []byte("first")); !deniedCheck(err) {
			t.Errorf("a write: %v", err)
		}
		if e, err := store.Read(wait.Context(t), "elections/billing"); err != nil || !e.Absent() {
			t.Errorf("the cell holds %q (%v)", e.Value, err)
		}
		allow(t, url, bucket, "elections/*")
		v, err := store.CompareAndSwap(wait.Context(t), "elections/billing", "", []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CompareAndSwap(wait.Context(t), "elections/billing", v, []byte("second")); err != nil {
			t.Error(err)
		}
		if err := store.CheckRights(wait.Context(t), "elections/billing"); err != nil {
			t.Error(err)
		}
	})
}

func deniedCheck(err error) bool {
	return errors.Is(err, driver.ErrDenied) && strings.Contains(err.Error(), "elections/.tenure-probe-conditions") &&
		strings.Contains(err.Error(), "s3:PutObject")
}

// allow gives the stranger the rights of a candidate to these objects.
func allow(t *testing.T, url, bucket, objects string) {
	t.Helper()
	type statement struct{ Effect, Principal, Action, Resource any }
	bucketARN := "arn:aws:s3:::" + bucket
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []statement{
		{"Allow", map[string]any{"AWS": s3d.Stranger}, []string{"s3:GetObject", "s3:PutObject"}, bucketARN + "/" + objects},
		{"Allow", map[string]any{"AWS": s3d.Stranger}, "s3:ListBucket", bucketARN},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s3d.Client(url).PutBucketPolicy(wait.Context(t), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: aws.String(string(policy))})
	if err != nil {
		t.Fatal(err)
	}
}
