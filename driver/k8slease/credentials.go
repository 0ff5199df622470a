package k8slease

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// credentials names the settings by which the server knows a client, for messages. It is empty if
// there are none. It reads the client certificate, which is the usual one to expire.
func credentials(c *rest.Config) string {
	var all []string
	add := func(set bool, name string) {
		if set {
			all = append(all, name)
		}
	}
	add(c.BearerTokenFile != "", "the token in "+c.BearerTokenFile)
	add(c.BearerToken != "" && c.BearerTokenFile == "", "the token of the configuration")
	add(c.CertFile != "" || len(c.CertData) > 0, "the client certificate "+certificate(c))
	add(c.Username != "", "the password of user "+c.Username)
	if c.ExecProvider != nil {
		add(true, "those of the plug-in "+c.ExecProvider.Command)
	}
	if c.AuthProvider != nil {
		add(true, "those of the provider "+c.AuthProvider.Name)
	}
	return strings.Join(all, " and ")
}

// certificate says where the client certificate is, and whether its time has ended.
func certificate(c *rest.Config) string {
	text, place := c.CertData, "of the configuration"
	if len(text) == 0 {
		text, _ = os.ReadFile(c.CertFile)
		place = "in " + c.CertFile
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return place
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch now := time.Now(); {
	case err != nil:
	case now.After(cert.NotAfter):
		place += fmt.Sprintf(", which expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(cert.NotBefore):
		place += fmt.Sprintf(", which is not valid before %s", cert.NotBefore.UTC().Format(time.RFC3339))
	}
	return place
}

// denied adds the settings that are at fault to the server's text, and the remedy.
func (e *StatusError) denied(said string) string {
	switch {
	case e.Code != http.StatusUnauthorized && e.credentials == "":
		return said + ": the configuration has no credentials: name a user with a token or a client certificate in it"
	case e.Code != http.StatusUnauthorized:
		return said + ": bind a Role with the verbs get, list and watch on leases in coordination.k8s.io, " +
			"and for a candidate create and update"
	}
	return fmt.Sprintf("the API server does not accept the credentials (%s): renew %s", said,
		cmp.Or(e.credentials, "the token or the certificate"))
}
