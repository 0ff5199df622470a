package main

import (
	"github.com/tenure-go/tenure/driver/k8slease"
)

func tenureOnKubernetes(at place) (client, error) {
	s, err := k8slease.New(kubernetes(at), at.Bucket)
	return withTenure(at, s, err)
}
