package stores_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

func TestParseS3(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		raw  string
		want stores.S3
		show string
	}{
		{"s3://my-bucket.eu", stores.S3{Bucket: "my-bucket.eu"}, ""},
		{"s3://bucket/", stores.S3{Bucket: "bucket"}, "s3://bucket"},
		{"s3://bucket/a/b/", stores.S3{Bucket: "bucket", Prefix: "a/b"}, "s3://bucket/a/b"},
		{"s3://bucket/a%23b", stores.S3{Bucket: "bucket", Prefix: "a#b"}, "s3://bucket/a#b"},
		{
			"s3://bucket/p?endpoint=http://127.0.0.1:9000/&region=us-east-1",
			stores.S3{Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:9000", Region: "us-east-1"},
			"s3://bucket/p?endpoint=http://127.0.0.1:9000&region=us-east-1",
		},
		{
			"s3://bucket?unquoted=true&path-style=true&region=r&endpoint=https%3A%2F%2Fh",
			stores.S3{Bucket: "bucket", Endpoint: "https://h", Region: "r", PathStyle: &yes, Unquoted: true},
			"s3://bucket?endpoint=https://h&region=r&path-style=true&unquoted=true",
		},
		{"s3://bucket?path-style=false&unquoted=false", stores.S3{Bucket: "bucket", PathStyle: &no}, "s3://bucket?path-style=false"},
	} {
		t.Run(c.raw, func(t *testing.T) {
			got, err := stores.Parse("--store", c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.Setting != "--store" || got.NATS != nil || got.Pushes() || !reflect.DeepEqual(*got.S3, c.want) {
				t.Errorf("got %+v", got)
			}
			if c.show == "" {
				c.show = c.raw
			}
			if got.String() != c.show {
				t.Errorf("shown as %s, want %s", got, c.show)
			}
		})
	}
}

func TestParseS3RefusesWithAHintAndWithoutCredentials(t *testing.T) {
	for _, c := range []struct{ raw, want, hint string }{
		{"s3:bucket", "// is missing", "s3://bucket"},
		{"s3://", "names no bucket", "s3://bucket"},
		{"s3:///prefix", "names no bucket", "s3://bucket"},
		{"s3://?region=r", "names no bucket", "s3://bucket"},
		{"s3://ab", `no bucket can have the name "ab"`, "3 to 63"},
		{"s3://a..b", `no bucket can have the name "a..b"`, "3 to 63"},
		{"s3://-ab", `no bucket can have the name "-ab"`, "3 to 63"},
		{"s3://ab-", `no bucket can have the name "ab-"`, "3 to 63"},
		{"s3://UPPER", `no bucket can have the name "UPPER"`, "small letters"},
		{"s3://my_bucket", `no bucket can have the name "my_bucket"`, "small letters, digits, - and ."},
		{"s3://" + strings.Repeat("b", 64), "no bucket can have the name", "3 to 63"},
		{"s3://bu*cket", `no bucket can have the name "bu*cket"`, "3 to 63"},
		{"s3://my bucket", "characters that are not allowed", "3 to 63"},
		{"s3://localhost:9000/bucket", "has a host where", "endpoint=http://host:9000"},
		{"s3://host:port/bucket", "has a host where", "endpoint=http://host:9000"},
		{"s3://[::1]/bucket", "has a host where", "endpoint=http://host:9000"},
		{"s3://bucket/a//b", `prefix "a//b"`, "s3://bucket"},
		{"s3://bucket/../b", `prefix "../b"`, "s3://bucket"},
		{"s3://bucket#x", "behind #", "%23"},
		{"s3://bucket#", "behind #", "%23"},
		{"s3://bucket?reigon=r", `parameter "reigon" is unknown`, "known are endpoint, region, path-style, unquoted"},
		{"s3://bucket?s3cret", "an unknown parameter has no value", "known are"},
		{"s3://bucket?region=a&region=b", "region is given twice", "leave out"},
		{"s3://bucket?region=", "region is empty", "s3://bucket"},
		{"s3://bucket?region=%zz", "cannot be read", "%26"},
		{"s3://bucket?path-style=maybe", "path-style must be true or false", "s3://bucket"},
		{"s3://bucket?unquoted=1.5", "unquoted must be true or false", "s3://bucket"},
		{"s3://bucket?endpoint=localhost:9000", "endpoint must be the URL", "endpoint=http://"},
		{"s3://bucket?endpoint=https://storage.googleapis.com", "unfit for elections: Google Cloud Storage", "tenure help stores"},
		{"s3://bucket?endpoint=ftp://h", "endpoint must be the URL", "endpoint=http://"},
		{"s3://bucket?endpoint=http://h%3Fx", "endpoint must be the URL", "endpoint=http://"},
		{"s3://id:s3cret@bucket", "credentials", "AWS_ACCESS_KEY_ID"},
		{"s3://id:s3%zzcret@bucket", "credentials", "AWS_ACCESS_KEY_ID"},
		{"s3://bucket?endpoint=http://id:s3cret@h", "credentials", "AWS_ACCESS_KEY_ID"},
		{"s3://bucket?endpoint=http%3A%2F%2Fid:s3cret%40h", "credentials", "AWS_ACCESS_KEY_ID"},
		{"s3://bucket?access_key=s3cret", `"access_key" is unknown`, "AWS_ACCESS_KEY_ID"},
		{"s3://bucket?AWS_SECRET=s3cret", `"AWS_SECRET" is unknown`, "AWS_ACCESS_KEY_ID"},
		{"s3://bucket?X-Amz-Signature=s3cret", "is unknown", "AWS_ACCESS_KEY_ID"},
	} {
		t.Run(c.raw, func(t *testing.T) {
			_, err := stores.Parse("--store", c.raw)
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("got %v", err)
			}
			if !strings.HasPrefix(f.Error(), "--store") || !strings.Contains(f.Error(), c.want) || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("got error %q and hint %q", f.Error(), f.Hint)
			}
			if strings.Contains(f.Error()+f.Hint, "cret") {
				t.Errorf("shows a secret: %v", f)
			}
		})
	}
}

func TestCommandsOnObjects(t *testing.T) {
	for _, c := range []struct {
		s    stores.S3
		want stores.Commands
	}{
		{
			stores.S3{Bucket: "bucket", Prefix: "p", Endpoint: "http://h:1", Region: "r"},
			stores.Commands{
				Look:   "aws s3 cp s3://bucket/p/key - --endpoint-url http://h:1 --region r",
				Delete: "aws s3 rm s3://bucket/p/key --endpoint-url http://h:1 --region r",
			},
		},
		{stores.S3{Bucket: "bucket"}, stores.Commands{Look: "aws s3 cp s3://bucket/key -", Delete: "aws s3 rm s3://bucket/key"}},
		{
			stores.S3{Bucket: "bucket", Endpoint: "http://h:1", Anonymous: true},
			stores.Commands{Look: "curl http://h:1/bucket/key", Delete: "curl -X DELETE http://h:1/bucket/key"},
		},
	} {
		if got := (stores.Place{S3: &c.s}).Commands("key"); got != c.want {
			t.Errorf("got %+v", got)
		}
	}
}
