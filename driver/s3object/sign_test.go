package s3object

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestReplacedSecret: one access key gets another secret.
func TestReplacedSecret(t *testing.T) {
	store, err := New(s3.New(s3.Options{Region: "eu-test-1"}), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	signed := func(by s3.HTTPSignerV4, secret string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host/bucket/a%20b", nil)
		if err != nil {
			t.Fatal(err)
		}
		key := aws.Credentials{AccessKeyID: "key", SecretAccessKey: secret}
		if err := by.SignHTTP(t.Context(), key, r, "hash", "s3", "eu-test-1", at); err != nil {
			t.Fatal(err)
		}
		return r.Header.Get("Authorization")
	}
	for _, secret := range []string{"one", "one", "two", "one"} {
		fresh := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		if got, want := signed(store.client.Options().HTTPSignerV4, secret), signed(fresh, secret); got != want {
			t.Errorf("secret %s: got %s, want %s", secret, got, want)
		}
	}
}
