package s3bucket

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
)

func TestCommandsOnObjects(t *testing.T) {
	for _, c := range []struct {
		s    Place
		want kind.Commands
	}{
		{
			Place{Bucket: "bucket", Prefix: "p", Endpoint: "http://h:1", Region: "r"},
			kind.Commands{
				Look:   "aws s3 cp s3://bucket/p/key - --endpoint-url http://h:1 --region r",
				Delete: "aws s3 rm s3://bucket/p/key --endpoint-url http://h:1 --region r",
			},
		},
		{Place{Bucket: "bucket"}, kind.Commands{Look: "aws s3 cp s3://bucket/key -", Delete: "aws s3 rm s3://bucket/key"}},
		{
			Place{Bucket: "bucket", Endpoint: "http://h:1", Anonymous: true},
			kind.Commands{Look: "curl http://h:1/bucket/key", Delete: "curl -X DELETE http://h:1/bucket/key"},
		},
	} {
		if got := c.s.Commands("key"); got != c.want {
			t.Errorf("got %+v", got)
		}
	}
}
