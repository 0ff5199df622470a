package stores_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/azurecontainer"
	"github.com/tenure-go/tenure/cmd/internal/stores/dynamoplace"
	"github.com/tenure-go/tenure/cmd/internal/stores/gcsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/redisprefix"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/sqltable"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/places"
)

func TestParse(t *testing.T) {
	yes, no, prefix := true, false, "a:"
	for _, c := range []struct {
		raw  string
		want kind.Place
		show string // empty: raw
	}{
		{"nats://host:4222/E", &natsbucket.Place{Servers: []string{"nats://host:4222"}, Bucket: "E"}, "nats://host:4222/E"},
		{
			"nats://host/E?migrating=true", &natsbucket.Place{Servers: []string{"nats://host"}, Bucket: "E", Migrating: true},
			"nats://host/E?migrating=true",
		},
		{
			"nats://host/E?pristine=true&migrating=true",
			&natsbucket.Place{Servers: []string{"nats://host"}, Bucket: "E", Migrating: true, Pristine: true},
			"nats://host/E?migrating=true",
		},
		{"nats://host/E/", &natsbucket.Place{Servers: []string{"nats://host"}, Bucket: "E"}, "nats://host/E"},
		{"tls://host/MY_e-1", &natsbucket.Place{Servers: []string{"tls://host"}, Bucket: "MY_e-1"}, "tls://host/MY_e-1"},
		{"nats://[::1]:4222/E", &natsbucket.Place{Servers: []string{"nats://[::1]:4222"}, Bucket: "E"}, "nats://[::1]:4222/E"},
		{"nats://[::1]/E", &natsbucket.Place{Servers: []string{"nats://[::1]"}, Bucket: "E"}, "nats://[::1]/E"},
		{
			"nats://a:1,b:2/E", &natsbucket.Place{Servers: []string{"nats://a:1", "nats://b:2"}, Bucket: "E"},
			"nats://a:1,b:2/E",
		},
		{
			"nats://user:pa%2Fss%40word@host/E",
			&natsbucket.Place{Servers: []string{"nats://host"}, User: "user", Password: "pa/ss@word", Bucket: "E"}, "nats://***@host/E",
		},
		{
			"nats://s3cret@a,b/E",
			&natsbucket.Place{Servers: []string{"nats://a", "nats://b"}, Token: "s3cret", Bucket: "E"}, "nats://***@a,b/E",
		},
		{"s3://my-bucket.eu", &s3bucket.Place{Bucket: "my-bucket.eu"}, ""},
		{"s3://bucket/", &s3bucket.Place{Bucket: "bucket"}, "s3://bucket"},
		{"s3://bucket/a/b/", &s3bucket.Place{Bucket: "bucket", Prefix: "a/b"}, "s3://bucket/a/b"},
		{"s3://bucket/a%23b", &s3bucket.Place{Bucket: "bucket", Prefix: "a#b"}, "s3://bucket/a#b"},
		{
			"s3://bucket/p?endpoint=http://127.0.0.1:9000/&region=us-east-1",
			&s3bucket.Place{Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:9000", Region: "us-east-1"},
			"s3://bucket/p?endpoint=http://127.0.0.1:9000&region=us-east-1",
		},
		{
			"s3://bucket?unquoted=true&path-style=true&region=r&endpoint=https%3A%2F%2Fh",
			&s3bucket.Place{Bucket: "bucket", Endpoint: "https://h", Region: "r", PathStyle: &yes, Unquoted: true},
			"s3://bucket?endpoint=https://h&region=r&path-style=true&unquoted=true",
		},
		{"s3://bucket?path-style=false&unquoted=false", &s3bucket.Place{Bucket: "bucket", PathStyle: &no}, "s3://bucket?path-style=false"},
		{"gs://my_bucket.eu/a/b/", &gcsbucket.Place{Bucket: "my_bucket.eu", Prefix: "a/b"}, "gs://my_bucket.eu/a/b"},
		{
			"gs://bucket/p?anonymous=1&endpoint=http://h:1/", &gcsbucket.Place{Bucket: "bucket", Prefix: "p", Endpoint: "http://h:1", Anonymous: true},
			"gs://bucket/p?endpoint=http://h:1&anonymous=true",
		},
		{"azblob://myaccount/elections", &azurecontainer.Place{Account: "myaccount", Container: "elections"}, ""},
		{"azblob://myaccount/elections/a/b", &azurecontainer.Place{Account: "myaccount", Container: "elections", Prefix: "a/b"}, ""},
		{
			"azblob://myaccount/elections?endpoint=http://127.0.0.1:10000/myaccount/&credentials-file=/run/azure",
			&azurecontainer.Place{
				Account: "myaccount", Container: "elections", Endpoint: "http://127.0.0.1:10000/myaccount", CredentialsFile: "/run/azure",
			},
			"azblob://myaccount/elections?endpoint=http://127.0.0.1:10000/myaccount&credentials-file=/run/azure",
		},
		{"dynamodb://elections", &dynamoplace.Place{Table: "elections"}, ""},
		{"dynamodb://My_Table.1?region=eu-central-1", &dynamoplace.Place{Table: "My_Table.1", Region: "eu-central-1"}, ""},
		{"dynamodb://elections?endpoint=http://h:8000", &dynamoplace.Place{Table: "elections", Endpoint: "http://h:8000"}, ""},
		{"kafka://host/topic", &kafkatopic.Place{Brokers: []string{"host"}, Topic: "topic"}, ""},
		{"kafka://a:1,b,[::1]:2/my.to_p-ic/", &kafkatopic.Place{Brokers: []string{"a:1", "b", "[::1]:2"}, Topic: "my.to_p-ic"}, "kafka://a:1,b,[::1]:2/my.to_p-ic"},
		{"kafka:///topic", &kafkatopic.Place{Topic: "topic"}, ""},
		{
			"kafka://user:pa%2Fss%40@h/t?mode=log",
			&kafkatopic.Place{Brokers: []string{"h"}, User: "user", Password: "pa/ss@", Topic: "t"}, "kafka://***@h/t",
		},
		{"kafka://us@er:pass@h/t", &kafkatopic.Place{Brokers: []string{"h"}, User: "us@er", Password: "pass", Topic: "t"}, "kafka://***@h/t"},
		{"kafka://h/t?mode=neli", &kafkatopic.Place{Brokers: []string{"h"}, Topic: "t", NELI: &kafkatopic.NELI{}}, ""},
		{
			"kafka://h/t?timeout=500ms&session=6s&without-goneli=true&nominee-only=true&group-topic=T&group=g&mode=neli&replicas=2",
			&kafkatopic.Place{
				Brokers: []string{"h"}, Topic: "t", Replicas: 2, Timeout: 500 * time.Millisecond,
				NELI: &kafkatopic.NELI{Group: "g", Topic: "T", NomineeOnly: true, WithoutGoNELI: true, Session: 6 * time.Second},
			},
			"kafka://h/t?mode=neli&group=g&group-topic=T&nominee-only=true&without-goneli=true&session=6s&replicas=2&timeout=500ms",
		},
		{"postgres://bob:geheim@h:1,i:2/db?table=s.t&sslmode=require", &sqltable.Place{Scheme: "postgres", URL: "//bob:geheim@h:1,i:2/db?sslmode=require", Table: "s.t"}, "postgres://bob:***@h:1,i:2/db?sslmode=require&table=s.t"},
		{"postgresql://bob:geheim@h/db", &sqltable.Place{Scheme: "postgres", URL: "//bob:geheim@h/db"}, "postgres://bob:***@h/db"},
		{"mariadb://bob@h/db", &sqltable.Place{Scheme: "mysql", URL: "//bob@h/db"}, "mysql://bob@h/db"},
		{"mysql://bob:a@geheim@h/db", &sqltable.Place{Scheme: "mysql", URL: "//bob:a@geheim@h/db"}, "mysql://bob:***@h/db"},
		{"sqlite:/a@b/c.db", &sqltable.Place{Scheme: "sqlite", URL: "/a@b/c.db"}, "sqlite:/a@b/c.db"},
		{"postgres://?service=x&push=on", &sqltable.Place{Scheme: "postgres", URL: "//?service=x"}, "postgres://?service=x"},
		{"postgres://h/db?push=off", &sqltable.Place{Scheme: "postgres", URL: "//h/db", Push: "off"}, "postgres://h/db?push=off"},
		{"postgres://h/db?listen=i:2", &sqltable.Place{Scheme: "postgres", URL: "//h/db", Listen: "i:2"}, "postgres://h/db?listen=i:2"},
		{"mysql://bob@h/db?tls=true", &sqltable.Place{Scheme: "mysql", URL: "//bob@h/db?tls=true"}, "mysql://bob@h/db?tls=true"},
		{"mysql://h/db?ssl-ca=a.pem", &sqltable.Place{Scheme: "mysql", URL: "//h/db?ssl-ca=a.pem"}, "mysql://h/db?ssl-ca=a.pem"},
		{"sqlite:/a/b.db?table=t", &sqltable.Place{Scheme: "sqlite", URL: "/a/b.db", Table: "t"}, "sqlite:/a/b.db?table=t"},
		{"sqlite:/a/b.db?pristine=true&table=t", &sqltable.Place{Scheme: "sqlite", URL: "/a/b.db", Table: "t", Pristine: true}, "sqlite:/a/b.db?table=t"},
		{"sqlite:///a/b.db", &sqltable.Place{Scheme: "sqlite", URL: "/a/b.db"}, "sqlite:/a/b.db"},
		{"sqlite:b.db", &sqltable.Place{Scheme: "sqlite", URL: "b.db"}, "sqlite:b.db"},
		{"redis://host", &redisprefix.Place{Hosts: []string{"host"}}, ""},
		{"redis://host:6380/0", &redisprefix.Place{Hosts: []string{"host:6380"}}, "redis://host:6380"},
		{"valkeys://h/7", &redisprefix.Place{TLS: true, Hosts: []string{"h"}, Database: 7}, "rediss://h/7"},
		{"redis://us:pa%2Fss@h?prefix=a:", &redisprefix.Place{Hosts: []string{"h"}, User: "us", Password: "pa/ss", Prefix: &prefix}, "redis://***@h?prefix=a:"},
		{
			"redis://:pw@a:1,b,[::1]/2?sentinel=main&wait=2&sentinel-user=s&sentinel-password-file=f",
			&redisprefix.Place{
				Hosts: []string{"a:1", "b", "[::1]"}, Password: "pw", Database: 2, Sentinel: "main", Wait: 2, SentinelUser: "s", SentinelPasswordFile: "f",
			},
			"redis://***@a:1,b,[::1]/2?wait=2&sentinel=main&sentinel-user=s&sentinel-password-file=f",
		},
		{"redis://a,b?cluster=true", &redisprefix.Place{Hosts: []string{"a", "b"}, Cluster: true}, ""},
		{
			"rediss://u@h?tls-ca=a.pem&tls-cert=b.pem&tls-key=c.pem&password-file=p",
			&redisprefix.Place{TLS: true, Hosts: []string{"h"}, User: "u", CA: "a.pem", Cert: "b.pem", Key: "c.pem", PasswordFile: "p"},
			"rediss://***@h?password-file=p&tls-ca=a.pem&tls-cert=b.pem&tls-key=c.pem",
		},
	} {
		t.Run(c.raw, func(t *testing.T) {
			got, err := stores.Parse("--store", c.raw)
			must.OK(t, err)
			if got.Setting != "--store" || !reflect.DeepEqual(got.At, c.want) {
				t.Errorf("got %#v", got.At)
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

func TestParseRefusesWithAHintAndWithoutCredentials(t *testing.T) {
	for _, c := range []struct{ raw, want, hint string }{
		{"", "is not a URL", ""},
		{"host", "is not a URL: no scheme is in front", "nats://host"},
		{"host:4222/E", "is not a URL: no scheme is in front; known are nats, ", "nats://host"},
		{"user:s3cret@host:4222/E", "is not a URL: no scheme is in front", "nats://host"},
		{"[::1]:4222/E", "is not a URL: no scheme is in front", ""},
		{"nats", "// must follow nats:", "the form is nats://"},
		{"nats:/host:4222/E", "// must follow nats:", "the form is nats://"},
		{"nats:/user:s3cret@host/E", "// must follow nats:", "the form is nats://"},
		{"memory:", "inside one process", ""},
		{"memory://x", "inside one process", ""},
		{"zk://s3cret@host/E", "unknown scheme", ""},
		{"s3-embedded:x", "inside tenure-demo", ""},
		{"NATS2://host/E", "unknown scheme", ""},
		{"redis:host", "// must follow", ""},
		{"redis://", "names no host", ""},
		{"redis://h:0", "port", ""},
		{"redis://a,,b?cluster=true", "host is empty", ""},
		{"redis://h/elections", "database is not a number", "?prefix="},
		{"redis://h/-1", "database is not a number", ""},
		{"redis://h/0#s3cret", "fragment", "%23"},
		{"redis://a,b", "several hosts", "sentinel=NAME"},
		{"redis://a/1?cluster=true", "only 0", ""},
		{"redis://a?cluster=true&sentinel=m", "cluster=true and sentinel", ""},
		{"redis://a?cluster=maybe", "true or false", ""},
		{"redis://a?wait=0", "replicas", ""},
		{"redis://a?wait=-1", "replicas", ""},
		{"redis://a?sentinel-user=u", "not sentinel", ""},
		{"redis://a?tls-ca=f", "rediss://", ""},
		{"rediss://a?tls-cert=f", "go together", ""},
		{"redis://:s3cret@a?password-file=f", "password and password-file", ""},
		{"redis://a?password=s3cret", "is unknown", "password-file"},
		{"redis://a?prefix=", "is empty", ""},
		{"nats:host", "// must follow", ""},
		{"nats:///E", "names no host", ""},
		{"nats://s3cret@/E", "names no host", ""},
		{"nats://host:4222", "names no bucket", ""},
		{"nats://host:4222/", "names no bucket", ""},
		{"nats://host:0/E", "port", ""},
		{"nats://host:65536/E", "port", ""},
		{"nats://host:/E", "port", ""},
		{"nats://a,,b/E", "a host is empty", ""},
		{"nats://host:port/E", "not a valid URL", ""},
		{"nats://host/a/b", "no / may follow", ""},
		{"nats://host/a.b", "letters, digits", ""},
		{"nats://host/E?x=1", "may follow the bucket", ""},
		{"nats://host/E?migrating=1", "may follow the bucket", ""},
		{"nats://host/E#x", "may follow the bucket", ""},
		{"nats://host/E;password=s3cret", "has one of the characters", "parameters stand behind a ?"},
		{"sqlite:/a.db;key=s3cret", "has one of the characters ; = in a name", "parameters stand behind a ?"},
		{"nats://user:s3/cret@host/E", "not a valid URL", ""},
		{"nats://user:12/s3cret@host/E", "/ before @", ""},
		{"nats://user:s3%zzcret@host/E", "not a valid URL", ""},
		{"nats://user:12?s3cret@host/E", "may follow the bucket", ""},
		{"nats://user:12#s3cret@host/E", "may follow the bucket", ""},
		{"s3:bucket", "// must follow", "s3://BUCKET"},
		{"s3://", "names no bucket", "s3://bucket"},
		{"gs:///prefix", "names no bucket", "gs://bucket"},
		{"gs://ab", `no bucket can have the name "ab"`, "3 to 222"},
		{"gs://host:9000/bucket", "no bucket can have the name", "3 to 222"},
		{"gs://s3cret@bucket", "has credentials in it", "GOOGLE_APPLICATION_CREDENTIALS"},
		{"gs://bucket?endpoint=http://u:s3cret@h", "has credentials in it", "GOOGLE_APPLICATION_CREDENTIALS"},
		{"gs://bucket?token=s3cret", `parameter "token" is unknown`, "GOOGLE_APPLICATION_CREDENTIALS"},
		{"gs://bucket?endpoint=h:1", "endpoint must be the URL of a server", "gs://bucket"},
		{"gs://bucket?anonymous=maybe", "must be true or false", "gs://bucket"},
		{"gs://bucket/a//b", "would be resolved away", "gs://bucket"},
		{"gs://bucket#x", "has a fragment", "%23"},
		{"azblob://", "names no storage account", "azblob://"},
		{"azblob://myaccount", "names no container", "azblob://"},
		{"azblob://ab/elections", "3 to 24", "azblob://"},
		{"azblob://myaccount/Elections", "3 to 63", "azblob://"},
		{"azblob://myaccount/a--b", "3 to 63", "azblob://"},
		{"azblob://a.blob.core.windows.net/elections", "host where the account", "endpoint="},
		{"azblob://s3cret:s3cret@myaccount/elections", "has credentials", "credentials-file="},
		{"azblob://myaccount/elections#x", "fragment", "%23"},
		{"azblob://myaccount/elections/a//b", "would be resolved away", "azblob://"},
		{"azblob://myaccount/elections?sv=1&sig=s3cret", "unknown", "credentials-file="},
		{"azblob://myaccount/elections?account-key=s3cret", "unknown", "credentials-file="},
		{"azblob://myaccount/elections?endpoint=h:1", "endpoint must be the URL of a server", "azblob://"},
		{"azblob://myaccount/elections?endpoint=http://h?sig%3Ds3cret", "has credentials", "credentials-file="},
		{"dynamodb://", "names no table", "dynamodb://elections"},
		{"dynamodb://ab", "3 to 255", "dynamodb://elections"},
		{"dynamodb://elections/prefix", "path behind the table", "dynamodb://elections"},
		{"dynamodb://host:8000", "host where the table", "endpoint="},
		{"dynamodb://s3cret:s3cret@elections", "has credentials", "AWS_ACCESS_KEY_ID"},
		{"dynamodb://elections#x", "fragment", "%23"},
		{"dynamodb://elections?region=", "region is empty", "dynamodb://elections"},
		{"dynamodb://elections?access-key=s3cret", "unknown", "AWS_ACCESS_KEY_ID"},
		{"dynamodb://elections?endpoint=h:1", "endpoint must be the URL of a server", "dynamodb://elections"},
		{"dynamodb://elections?endpoint=http://u:s3cret@h/", "has credentials", "AWS_ACCESS_KEY_ID"},
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
		{"kafka:host", "// must follow", "kafka://HOST"},
		{"kafka://", "names no topic", "kafka://host"},
		{"kafka://host", "names no topic", "kafka://host"},
		{"kafka://host/", "names no topic", "kafka://host"},
		{"kafka://host/a/b", "the name of a topic may have only", "kafka://host"},
		{"kafka://host/..", "the name of a topic may have only", "kafka://host"},
		{"kafka://host/" + strings.Repeat("t", 250), "the name of a topic may have only", "kafka://host"},
		{"kafka://host:0/t", "port", "kafka://host"},
		{"kafka://a,,b/t", "a host is empty", "kafka://host"},
		{"kafka://a:port/t", "port", "kafka://host"},
		{"kafka://host/t#", "behind #", "%23"},
		{"kafka://host/t%zz", "not a valid URL", "kafka://host"},
		{"kafka://s3cret@host/t", "no user or no password", "user:password@"},
		{"kafka://:s3cret@host/t", "no user or no password", "user:password@"},
		{"kafka://user:s3/cret@host/t", "before @", "%2F"},
		{"kafka://user:s3?cret@host/t", "before @", "%3F"},
		{"kafka://user:s3%zzcret@host/t", "not a valid URL", "%XX"},
		{"kafka://host/t?mod=neli", `"mod" is unknown`, "known are mode, group"},
		{"kafka://host/t?s3cret", "an unknown parameter has no value", "known are"},
		{"kafka://host/t?password=s3cret", "is unknown", "--kafka-properties"},
		{"kafka://host/t?security.protocol=SSL", "is unknown", "TENURE_KAFKA_SECURITY_PROTOCOL"},
		{"kafka://host/t?mode=neli&mode=log", "given twice", "leave out"},
		{"kafka://host/t?mode=strict", "mode must be log or neli", "mode=neli"},
		{"kafka://host/t?mode=", "mode is empty", "mode=neli"},
		{"kafka://host/t?group=g", "needs mode=neli", "mode=neli"},
		{"kafka://host/t?mode=log&session=6s", "needs mode=neli", "mode=neli"},
		{"kafka://host/t?mode=neli&group=a%20b", "group may have only letters", "mode=neli"},
		{"kafka://host/t?mode=neli&session=15", "session must be a time", "session=15s"},
		{"kafka://host/t?mode=neli&session=1ms", "session must be a time from 1s", "session=15s"},
		{"kafka://host/t?mode=neli&nominee-only=1.5", "nominee-only must be true or false", "mode=neli"},
		{"kafka://host/t?timeout=100ms", "timeout must be a time from 200ms to 1m", "kafka://"},
		{"kafka://host/t?replicas=0", "replicas must be a whole number from 1 to 32767", "kafka://"},
		{"kafka://host/t?replicas=99999", "replicas must be a whole number from 1 to 32767", "kafka://"},
		{"kafka://host/t?group=%zz", "cannot be read", "%26"},
		{"kafka-embedded:?mode=neli", "inside tenure-demo", "tenure-demo"},
		{"postgres://h/db?password=geheim", `--store "postgres://h/db?password=***": has a secret behind ?, where others could see it`, ""},
		{"postgres://u:a@geheim@h/db", `--store "postgres://u:***@h/db": is not a valid URL`, ""},
		{"postgresql://u:geheim", `--store "postgresql://***": is not a valid URL`, ""},
		{"postgres://u:a%zzgeheim@h/db", `--store "postgres://u:***@h/db": is not a valid URL`, ""},
		{"postgres://h/db?geheim", `--store "postgres://h/db?***": an unknown parameter has no value`, ""},
		{"mysql://h/db?password=a&geheim=b", `--store "mysql://h/db?password=***": has a secret behind ?, where others could see it`, ""},
		{"postgres://h/db?table=a.b.c", `--store "postgres://h/db?table=a.b.c": sqlstore: table "a.b.c": more than one dot`, ""},
		{"postgres://h/db?table=", `--store "postgres://h/db?table=": parameter "table" is empty`, ""},
		{"postgres://h/db?table=a&table=b", `--store "postgres://h/db?table=a&table=b": parameter "table" is given twice`, ""},
		{"postgres://u:p?geheim@h/db", `--store "postgres://***": has an @ behind the first / or ?`, ""},
		{"postgres://u:12/geheim@h/db", `--store "postgres://***": has an @ behind the first / or ?`, ""},
		{"mysql://u:p?geheim=x@h/db", `--store "mysql://***": has an @ behind the first / or ?`, ""},
		{"postgres://u:geheim?x=1@h/db", `--store "postgres://***": has an @ behind the first / or ?`, ""},
		{"postgres://h/db?push=no", `--store "postgres://h/db?push=no": parameter push is "no", not on or off`, ""},
		{"postgres://h/db?push=off&listen=a:1", `--store "postgres://h/db?push=off&listen=a:1": has push=off and an address to listen at`, ""},
		{"postgres://h/db?listen=a", `--store "postgres://h/db?listen=a": parameter listen is "a", not HOST:PORT`, ""},
		{"mysql://h/db?push=off", `--store "mysql://h/db?push=off": parameter "push" is unknown`, ""},
		{"mysql://h/db?ssl-ca=a&tls=skip-verify", `--store "mysql://h/db?ssl-ca=a&tls=skip-verify": has ssl-ca, and tls=skip-verify, which checks no certificate`, ""},
		{"postgres://h/db#x", `--store "postgres://h/db#***": has a fragment behind #`, ""},
		{"mysql://h", `--store "mysql://h": names no database`, ""},
		{"mysql://h/", `--store "mysql://h/": names no database`, ""},
		{"mysql://h/db?sslmode=x", `--store "mysql://h/db?sslmode=x": parameter "sslmode" is unknown`, ""},
		{"sqlite:", `--store "sqlite:": names no file; all candidates must share one`, ""},
		{"sqlite::memory:", `--store "sqlite::memory:": names no file; all candidates must share one`, ""},
		{"sqlite://u:geheim@db.example/app", `--store "sqlite://***": names a user and a server; SQLite has neither`, ""},
		{"sqlite:a.db?mode=ro", `--store "sqlite:a.db?mode=***": has a parameter that SQLite does not take`, ""},
		{"sqlite:a.db?pristine=yes", `--store "sqlite:a.db?pristine=yes": parameter pristine is "yes", not true`, ""},
		{"postgres://h/db?pristine=true", `--store "postgres://h/db?pristine=true": parameter pristine is for SQLite, not for postgres`, ""},
		{"mysql://bob:geheim@h/db?charset=abc", `--store "mysql://bob:***@h/db?charset=***": parameter "charset" is unknown`, ""},
	} {
		t.Run(c.raw, func(t *testing.T) {
			_, err := stores.Parse("--store", c.raw)
			var f *fault.Error
			if !errors.As(err, &f) || f.Hint == "" {
				t.Fatalf("no hint: %v", err)
			}
			whole := strings.HasPrefix(c.want, "--store")
			if !strings.HasPrefix(f.Error(), "--store") || !strings.Contains(f.Error(), c.want) || whole && f.Error() != c.want || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("got error %q and hint %q", f.Error(), f.Hint)
			}
			if shown := strings.ReplaceAll(f.Error()+f.Hint, "a secret behind", ""); strings.Contains(shown, "cret") || strings.Contains(shown, "geheim") {
				t.Errorf("shows a part of a secret: %v", f)
			}
		})
	}
}

// A candidate process gets all settings of its demo. Printed text shows none of the credentials.
func TestPrintedPlacesHideCredentials(t *testing.T) {
	place, nats := places.Parse(t, "kafka://user:s3cret@h:1,i/t"), places.Parse(t, "nats://user:s3cret@host/E")
	place.At.(*kafkatopic.Place).Properties = map[string]string{"sasl.password": "s3cret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(strings.Repeat(verb, 6), place, &place, place.At, nats, &nats, nats.At); strings.Contains(got, "s3cret") || strings.Contains(got, "user") {
			t.Errorf("%s shows %s", verb, got)
		}
	}
	if got := nats.Commands("k").Look; got != "nats --server nats://***@host kv get E k" {
		t.Errorf("the nats command is %s", got)
	}
	want := "kafka-console-consumer.sh --bootstrap-server h:1,i:9092 --command-config client.properties --topic t --partition 0 " +
		"--offset earliest --formatter-property print.headers=true --formatter-property print.offset=true"
	if got := place.Commands("k"); got.Look != want || got.Delete != "" {
		t.Errorf("the commands are %+v", got)
	}
	text, err := json.Marshal(place)
	must.OK(t, err)
	var same stores.Place
	if err := json.Unmarshal(text, &same); err != nil || !reflect.DeepEqual(same.At, place.At) {
		t.Errorf("a candidate gets %s", text)
	}
}

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"nats://host/E":                          "nats://host/E",
		"nats://user:pass@host/E":                "nats://***@host/E",
		"nats://us@er:pa@ss@host/E":              "nats://***@host/E",
		"nats://user:p/a?s#s@host/E":             "nats://***",
		"nats://u:pass@a:1,b:2/E":                "nats://***@a:1,b:2/E",
		"nats://a:1,u:pass@b:2/E":                "nats://***@b:2/E",
		"nats://a,nats://u:pass@b/E":             "nats://***",
		"nats://[::1]:4222/E?pristine=true":      "nats://[::1]:4222/E?pristine=true",
		"nats://u:pass":                          "nats://***",
		"nats://u:pass/E":                        "nats://***",
		"nats:pass":                              "***",
		"user:pass@host":                         "***",
		"pass@host":                              "***",
		"host=h password=pass":                   "***",
		"u:pass@tcp(h:3306)/db":                  "***",
		"jdbc:postgresql://u:pass@h/db":          "***",
		"redis+sentinel://:pass@h:1,i:2/main":    "redis+sentinel://***",
		"":                                       "***",
		"s3://b/p?endpoint=http://h:1&region=r":  "s3://b/p?endpoint=http://h:1&region=r",
		"s3://b?path-style=true&unquoted=true":   "s3://b?path-style=true&unquoted=true",
		"s3://b?secret=s3cret&region=r":          "s3://b?secret=***",
		"s3://b?region=r&secret=s3&cret=x":       "s3://b?region=r&secret=***",
		"s3://b?s3cret":                          "s3://b?***",
		"s3://b?s3cret==":                        "s3://b?***",
		"s3://b?region=":                         "s3://b?region=",
		"s3://id:s3cret@b?region=r":              "s3://***@b?region=r",
		"s3://b/s3cret%40h":                      "s3://***",
		"s3://b?endpoint=http://id:s3cret@h":     "s3://***",
		"s3://b?endpoint=http%3A//id:s3cret%40h": "s3://b?endpoint=***",
		"s3://b?endpoint=https://h/?s3cret":      "s3://b?endpoint=***",
		"s3://b?region=r#s3cret":                 "s3://b?region=r#***",
		"kafka://user:s3cret@h:1,i/t?mode=neli":  "kafka://***@h:1,i/t?mode=neli",
		"kafka://h/t?sasl.password=s3cret":       "kafka://h/t?sasl.password=***",
		"postgres://user:s3cret@h:1,i/db":        "postgres://user:***@h:1,i/db",
		"postgresql://user:a@s3cret@h/db":        "postgresql://user:***@h/db",
		"mysql://user@h/db?tls=true":             "mysql://user@h/db?tls=true",
		"mariadb://user:s3cret@h/db":             "mariadb://user:***@h/db",
		"postgres://user:s3/cret@h/db":           "postgres://***",
		"postgres://us%40er:s3cret@h/db":         "postgres://***@h/db",
		"postgres://s3@cret@h/db":                "postgres://***@h/db",
		"postgres:user:s3cret@h/db":              "***",
		"postgres://%2Frun%2Fpg/db":              "postgres://%2Frun%2Fpg/db",
		"sqlite:/a b/c@d.db?table=t":             "sqlite:/a b/c@d.db?table=t",
		"sqlite:/a.db?key=s3cret":                "sqlite:/a.db?key=***",
		"sqlite://u:s3cret@h/x":                  "sqlite://***",
	} {
		if got := stores.Redact(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}

func TestLimitsComeFromTheStore(t *testing.T) {
	for _, c := range []struct {
		raw   string
		lease time.Duration
		good  string
		bad   string
	}{
		{"nats://host/E", 500 * time.Millisecond, "a/b", "a b"},
		{"kafka://host/topic?mode=neli", time.Second, "a b", strings.Repeat("k", 250)},
		{"s3://bucket/" + strings.Repeat(strings.Repeat("p", 195)+"/", 5), 2 * time.Second, "a b", strings.Repeat("k", 45)},
		{"s3://bucket", 2 * time.Second, strings.Repeat("k", 255), strings.Repeat("k", 256)},
	} {
		b, err := places.Parse(t, c.raw).Limits()
		must.OK(t, err)
		if got := b.MinLease(); got != c.lease {
			t.Errorf("%s: least lease %v", c.raw, got)
		}
		if b.CheckKey(c.good) != nil || b.CheckKey(c.bad) == nil {
			t.Errorf("%s: keys %v and %v", c.raw, b.CheckKey(c.good), b.CheckKey(c.bad))
		}
	}
}

// The commands of the databases' own clients name the user. The clients ask for the password.
func TestCommandsOfDatabases(t *testing.T) {
	for raw, want := range map[string]string{
		"postgres://bob:geheim@h:1/db?sslmode=require": `psql 'postgres://bob@h:1/db?sslmode=require' -c "SELECT `,
		"postgres://bob%40x:geheim@h/db":               `psql 'postgres://h/db' -c "SELECT `,
		"postgres://h/db":                              `psql 'postgres://h/db' -c "SELECT `,
		"mysql://bob:geheim@h:1/db?tls=true":           `mysql -h h -P 1 -u bob -p db -e "SELECT `,
		"mysql://bob@h/db":                             `mysql -h h -u bob db -e "SELECT `,
		"mysql://h/db":                                 `mysql -h h db -e "SELECT `,
		"sqlite:/a/b.db":                               `sqlite3 /a/b.db "SELECT `,
	} {
		if got := places.Parse(t, raw).Commands("k").Look; !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", raw, got)
		}
	}
}

// TestDocs: the page of settings has the same parameters as the descriptions.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/configuration.md")
	must.OK(t, err)
	_, text, _ = bytes.Cut(text, []byte("\n## Stores\n"))
	text, _, _ = bytes.Cut(text, []byte("\n## "))
	var got, want []string
	for _, m := range regexp.MustCompile("`([a-z-]+)=[a-z]*`").FindAllSubmatch(text, -1) {
		got = append(got, string(m[1]))
	}
	for _, k := range stores.Kinds() {
		want = append(want, kind.Names(k.Parameters)...)
	}
	for _, all := range []*[]string{&got, &want} {
		slices.Sort(*all)
		*all = slices.Compact(*all)
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/configuration.md has %q; the kinds have %q", got, want)
	}
}

func TestHelp(t *testing.T) {
	all, some := stores.About(), stores.About("nats")
	for _, k := range stores.Kinds() {
		if !strings.Contains(all, k.Help()) || strings.Contains(some, k.Help()) == (k.Key == "nats") {
			t.Errorf("the help about %s is not where it should be", k.Key)
		}
	}
	var forms []string
	for _, k := range stores.Kinds() {
		for _, s := range k.Schemes {
			forms = append(forms, s.Form)
		}
		if n := strings.Count(stores.Containers(), k.Container); k.Container == "" || n != 1 {
			t.Errorf("%s has container %q, which is %d times in %s", k.Key, k.Container, n, stores.Containers())
		}
	}
	last := len(forms) - 1
	if want := strings.Join(forms[:last], ", ") + ", or " + forms[last]; stores.Forms() != want {
		t.Errorf("the forms are %s, want %s", stores.Forms(), want)
	}
}

func TestPropertiesOfPlaces(t *testing.T) {
	for _, c := range []struct {
		raw, key, kind string
		pushes         bool
		price          float64
		nomination     string // its end
	}{
		{"nats://h/E", "nats", "NATS", true, 0, ""},
		{"s3://bucket", "s3", "object storage", false, 0.0004, ""},
		{"s3://bucket?endpoint=http://h:1", "s3", "object storage", false, 0, ""},
		{"gs://bucket", "gcs", "Google Cloud Storage", false, 0.0004, ""},
		{"gs://bucket?anonymous=true", "gcs", "Google Cloud Storage", false, 0, ""},
		{"kafka://h/t", "kafka", "Kafka", true, 0, ""},
		{"kafka://h/t?mode=neli&nominee-only=true", "kafka", "Kafka", true, 0, "No other candidate ever claims."},
		{"kafka://h/t?mode=neli&without-goneli=true", "kafka", "Kafka", true, 0, "Other candidates wait one lease longer before they claim."},
		{"kafka://h/t?mode=neli&group=g", "kafka", "Kafka", true, 0, "the group confirms them as members."},
		{"mariadb://h/db", "sql", "MySQL", false, 0, ""},
		{"mysql://h/db?tls=true", "sql", "MySQL", false, 0, ""},
		{"sqlite:b.db", "sql", "SQLite", true, 0, ""},
		{"postgres://h/db", "sql", "PostgreSQL", true, 0, ""},
		{"postgres://h/db?push=on", "sql", "PostgreSQL", true, 0, ""},
		{"postgres://h/db?push=off", "sql", "PostgreSQL", false, 0, ""},
		{"postgres://h/db?listen=i:2", "sql", "PostgreSQL", true, 0, ""},
	} {
		p := places.Parse(t, c.raw)
		if text := p.Nomination("e"); !strings.HasSuffix(text, c.nomination) || (text == "") != (c.nomination == "") {
			t.Errorf("%s: the nomination is %q", c.raw, text)
		}
		prices, _ := p.Prices()
		if p.Description().Key != c.key || p.Kind() != c.kind || p.Pushes() != c.pushes || prices.Read != c.price {
			t.Errorf("%s: got %s, %s, %v, %v", c.raw, p.Description().Key, p.Kind(), p.Pushes(), prices.Read)
		}
	}
}

func TestConnectEndsWithItsPatience(t *testing.T) {
	url := "nats://" + places.Unreachable + "/E"
	// After 0, 0.1, 0.3, 0.7 and 1.5 s.
	for limit, want := range map[time.Duration]int{0: 0, 2 * time.Second: 5} {
		synctest.Test(t, func(t *testing.T) {
			failures, began := 0, time.Now()
			_, err := stores.Connect(t.Context(), places.Parse(t, url), "key", stores.Options{}, stores.Patience{
				Limit: limit, Told: func(error) { failures++ },
			})
			if !fault.Passes(err) || failures != want || time.Since(began) != limit {
				t.Errorf("%v: %d failures reported, ends after %v with %v", limit, failures, time.Since(began), err)
			}
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := stores.Connect(ctx, places.Parse(t, "nats://"+places.Unreachable+"/E"), "key", stores.Options{}, stores.Patience{
		Limit: stores.Forever, Told: func(error) { cancel(why) },
	})
	if !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
