package main

import (
	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/test/internal/k8sd"
)

// kubernetes returns the configuration of a client of the API server.
func kubernetes(at place) *rest.Config {
	return &rest.Config{Host: "https://" + at.Address(), BearerToken: k8sd.Admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}
