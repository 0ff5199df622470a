//go:build integration

package azureblob_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/azureblob"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestManagedIdentity: without a key or a SAS token in the environment, the token of the machine's
// identity is used.
func TestManagedIdentity(t *testing.T) {
	fake := azurefake.New("elections")
	fake.Allow("of the identity", azurefake.Candidate)
	server := httptest.NewTLSServer(fake)
	t.Cleanup(server.Close)
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "secret" || r.FormValue("resource") != "https://storage.azure.com" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"of the identity","expires_on":"%d","token_type":"Bearer"}`, time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(identity.Close)
	for name, value := range map[string]string{
		"IDENTITY_ENDPOINT": identity.URL, "IDENTITY_HEADER": "secret", "AZURE_CLIENT_ID": "", "AZURE_STORAGE_CONNECTION_STRING": "",
		"AZURE_STORAGE_KEY": "", "AZURE_STORAGE_SAS_TOKEN": "",
	} {
		t.Setenv(name, value)
		if value == "" {
			os.Unsetenv(name)
		}
	}
	store, err := azureblob.FromEnvironment(azurefake.Account, "elections",
		azureblob.WithEndpoint(server.URL+"/"+azurefake.Account), azureblob.WithClient(server.Client()))
	if err == nil {
		_, err = store.CompareAndSwap(wait.Context(t), "key", "", []byte("value"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if value := fake.Object("elections", "key").Value; value != "value" {
		t.Errorf("the blob has %q", value)
	}
}
