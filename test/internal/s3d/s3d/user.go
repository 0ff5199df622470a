package s3d

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The credentials of all servers.
const (
	// Access and Secret belong to a user with all rights.
	Access = "tenure"
	Secret = "tenure-secret"
	// Stranger and StrangerSecret belong to a user of versitygw without rights to other users'
	// buckets.
	Stranger       = "stranger"
	StrangerSecret = "stranger-secret"
	// Region is the region of all servers.
	Region = "eu-test-1"

	azureKey = "dGVudXJlLXNlY3JldA==" // base64, as Azure's protocol requires
)

// writeUsers adds the user Stranger to the file of versitygw.
func writeUsers(p place) error {
	type account struct {
		Access string `json:"access"`
		Secret string `json:"secret"`
		Role   string `json:"role"`
	}
	all := map[string]map[string]account{"accessAccounts": {Stranger: {Stranger, StrangerSecret, "user"}}}
	encoded, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.users(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.users(), "users.json"), encoded, 0o600)
}

// Rekey gives the user Stranger of versitygw another secret, and the rights of an administrator.
func (s *Server) Rekey(ctx context.Context, secret string) error {
	body := "<MutableProps><Secret>" + secret + "</Secret><Role>admin</Role></MutableProps>"
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.URLs()[0]+"/update-user?access="+Stranger, strings.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	admin := aws.Credentials{AccessKeyID: Access, SecretAccessKey: Secret}
	if err := v4.NewSigner().SignHTTP(ctx, admin, r, hash, "s3", Region, time.Now()); err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", answer.Status)
	}
	return nil
}
