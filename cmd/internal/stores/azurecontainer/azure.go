// Package azurecontainer describes stores in containers of Azure Blob Storage.
package azurecontainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
)

// Place is a container of a storage account. Credentials are not a part of it: they are in a file,
// in the environment, or those of an identity.
type Place struct {
	Account         string `json:"account"`
	Container       string `json:"container"`
	Prefix          string `json:"prefix,omitempty"`
	Endpoint        string `json:"endpoint,omitempty"`
	CredentialsFile string `json:"credentials_file,omitempty"`
}

var parameters = []kind.Parameter{
	{Name: "endpoint", Value: "URL", Meaning: "another address than https://ACCOUNT.blob.core.windows.net"},
	{Name: "credentials-file", Value: "FILE", Meaning: "holds a connection string or a SAS token, and is read again for each request"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:        "azure",
		Container:  "container",
		Schemes:    []kind.Scheme{{Name: "azblob", Form: "azblob://ACCOUNT/CONTAINER[/PREFIX]"}},
		About:      "Azure Blob Storage, --store azblob://ACCOUNT/CONTAINER[/PREFIX][?...], takes these parameters",
		Parameters: parameters,
		Notes: `Credentials come from credentials-file, from AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or
AZURE_STORAGE_SAS_TOKEN, or are those of a managed identity, a workload identity, a client secret
(AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET) or az login, never from the URL.`,
		Polled:      []string{"Azure Blob Storage"},
		TokenDigits: len("1795270861001"), // milliseconds of a server's clock
		DemoLease:   5 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL.
func (a *Place) String() string {
	u := "azblob://" + a.Account + "/" + a.Container
	if a.Prefix != "" {
		u += "/" + a.Prefix
	}
	return kind.With(u, "?", [2]string{"endpoint", a.Endpoint}, [2]string{"credentials-file", a.CredentialsFile})
}

// GoString is String.
func (a *Place) GoString() string { return a.String() }

// Product returns Azure Blob Storage.
func (a *Place) Product() string { return "Azure Blob Storage" }

// Pushes returns false.
func (a *Place) Pushes() bool { return false }

// Prices returns those of Microsoft, which docs/azure.md also has, or none for another server.
func (a *Place) Prices() kind.Prices {
	if a.Endpoint != "" {
		return kind.Prices{}
	}
	return kind.Prices{Read: 0.0004, Write: 0.005, List: "hot tier, locally redundant, East US", Date: "2026-11-29"}
}

// Commands returns those of the az command.
func (a *Place) Commands(key string) kind.Commands {
	name := key
	if a.Prefix != "" {
		name = a.Prefix + "/" + key
	}
	blob := " --account-name " + a.Account + " --container-name " + a.Container + " --name '" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	if a.Endpoint != "" {
		blob += " --blob-endpoint " + a.Endpoint
	}
	return kind.Commands{Look: "az storage blob download --no-progress --file /dev/stdout" + blob, Delete: "az storage blob delete" + blob}
}

// Limits calls no server.
func (a *Place) Limits() (driver.Bounded, error) { return azureblob.Limits(a.Prefix) }

// Open returns a store with a client of its own. It calls the server only to make the container.
func (a *Place) Open(ctx context.Context, o kind.Options) (*kind.Opened, error) {
	opts := []azureblob.Option{azureblob.WithPrefix(a.Prefix), azureblob.WithReport(o.Stale)}
	if a.Endpoint != "" {
		opts = append(opts, azureblob.WithEndpoint(a.Endpoint))
	}
	if a.CredentialsFile != "" {
		opts = append(opts, azureblob.WithCredentialsFile(a.CredentialsFile))
	}
	store, err := azureblob.FromEnvironment(a.Account, a.Container, opts...)
	if err != nil {
		return nil, fault.New("tenure help stores says where credentials come from", "%w", err)
	}
	if o.Create {
		ctx, cancel := context.WithTimeout(ctx, kind.CreateWithin)
		defer cancel()
		if err := store.CreateContainer(ctx); err != nil {
			return nil, a.Explain(err)
		}
	}
	return &kind.Opened{Driver: store, Close: func() error { return nil }}, nil
}

// likeThis is the hint for a wrong URL.
const likeThis = "give a URL such as azblob://myaccount/mycontainer/prefix"

// chain says in hints where credentials belong.
const chain = "put a connection string or a SAS token into a file and name it with credentials-file=, set AZURE_STORAGE_CONNECTION_STRING, " +
	"AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or use an identity; take them out of the URL"

// parse reads a URL of the form azblob://account/container[/prefix][?parameter=value[&...]].
func parse(raw string) (*Place, error) {
	u, err := kind.ParseURL(raw, chain, likeThis)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "":
		return nil, fault.New(likeThis, "names no storage account")
	case strings.ContainsAny(u.Host, ".:"):
		return nil, fault.New("give the name of the account alone, and another address than that of Azure with endpoint=; "+likeThis,
			"has a host where the account should be")
	}
	container, prefix, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if container == "" {
		return nil, fault.New(likeThis, "names no container behind the account")
	}
	a := &Place{Account: u.Host, Container: container, Prefix: strings.Trim(prefix, "/")}
	for _, err := range []error{azureblob.CheckAccount(a.Account), azureblob.CheckContainer(container)} {
		if err != nil {
			return nil, fault.New(likeThis, "%w", err)
		}
	}
	q := kind.Query{Known: kind.Names(parameters), Hint: likeThis, Elsewhere: chain, IsCredential: secretive.MatchString}
	if err := q.Each(u.RawQuery, a.set); err != nil {
		return nil, err
	}
	if _, err := a.Limits(); err != nil { // the prefix
		return nil, fault.New(likeThis, "%w", err)
	}
	return a, nil
}

// secretive finds parameters by which people may try to pass credentials, such as those of a SAS
// token.
var secretive = regexp.MustCompile(`(?i)^s[a-z]{1,4}$|key|secret|token|password|credential|signature|connection`)

func (a *Place) set(key, value string) (err error) {
	if key == "credentials-file" {
		a.CredentialsFile = value
		return nil
	}
	a.Endpoint, err = kind.Endpoint(value, chain)
	return err
}

// Explain returns the error for a container that cannot be used. The driver's errors say what to
// do. Hints add documents.
func (a *Place) Explain(err error) *fault.Error {
	var answer azureblob.AnswerError
	if answered, ok := errors.AsType[*azureblob.AnswerError](err); ok {
		answer = *answered
	}
	if answer.Status == http.StatusNotFound {
		return fault.New(kind.MadeBy(a.make()), "there is no container %s in account %s", a.Container, a.Account)
	}
	return kind.ExplainHTTP(err, answer.Status, cmp.Or(a.Endpoint, "https://"+a.Account+".blob.core.windows.net"),
		"docs/azure.md has a role that is enough for a candidate",
		"check the name of the account, the network, and endpoint= if there is one")
}

// make is the command that makes the container.
func (a *Place) make() string {
	return "az storage container create --account-name " + a.Account + " --name " + a.Container + " --auth-mode login"
}

var _ fmt.GoStringer = (*Place)(nil)
