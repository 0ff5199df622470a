//go:build integration

package s3

import (
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rotation"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestRealRotation: the secret key in the credentials file of AWS's tools is replaced.
func TestRealRotation(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		file, hand := rotation.File(t, "credentials", "[default]\naws_access_key_id="+s3d.Stranger+"\naws_secret_access_key=SECRET\n")
		(&rotation.Play{
			Args:  []string{"--store", "s3://" + bucket + "?endpoint=" + url + "&region=" + s3d.Region},
			Env:   []string{"AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_CONFIG_FILE=" + file + ".none"},
			Store: s3d.NewStore(t, url, bucket),
			Accept: func(secret string) {
				if err := server.Rekey(wait.Context(t), secret); err != nil {
					t.Fatal(err)
				}
			},
			Hand:    hand,
			Refusal: "SignatureDoesNotMatch",
		}).Run(t)
	})
}
