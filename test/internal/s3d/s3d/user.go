package s3d

import (
	"encoding/json"
	"os"
	"path/filepath"
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
