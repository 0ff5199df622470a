package k8snamespace

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/k8slease"
)

// Explain returns the error and the hint for a namespace that cannot be used.
func (p *Place) Explain(err error) *fault.Error {
	var (
		status    *k8slease.StatusError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &status):
		return p.explainStatus(err, status)
	case errors.As(err, &authority):
		return fault.New("put the cluster's CA into the kubeconfig: kubectl config set-cluster NAME --certificate-authority FILE --embed-certs",
			"%w", err)
	case errors.As(err, &invalid):
		return fault.New("renew the certificate that the error names", "%w", err)
	case errors.As(err, &record):
		return fault.New("the server has no TLS: correct server: in the kubeconfig", "%w", err)
	}
	f := fault.New("check that the API server answers: kubectl"+p.flags()+" get --raw /readyz", "%w", err)
	f.Passing = kind.Away(err)
	return f
}

func (p *Place) explainStatus(err error, status *k8slease.StatusError) *fault.Error {
	switch {
	case status.Code == http.StatusUnauthorized:
		return fault.New("log in again, or correct the user in the kubeconfig: kubectl"+p.flags()+" auth whoami", "%w", err)
	case errors.Is(err, driver.ErrDenied):
		return fault.New("docs/kubernetes.md has a Role that is enough for a candidate, and one for an observer", "%w", err)
	case status.Kind == "namespaces":
		return fault.New("kubectl create namespace NAME, or another one in --store "+example, "%w", err)
	case status.Code == http.StatusTooManyRequests, status.Code >= http.StatusInternalServerError:
		return fault.Passing("", "%w", err)
	}
	return fault.New("", "%w", err)
}
