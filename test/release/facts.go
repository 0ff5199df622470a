package main

import (
	"runtime"
	"strings"
)

// The facts that every artifact repeats.
const (
	name       = "tenure"
	module     = "github.com/tenure-go/tenure"
	homepage   = "https://" + module
	license    = "Apache-2.0"
	maintainer = "The Tenure authors <tenure-go@users.noreply.github.com>"
	summary    = "Leader election on the store that you already run"
	about      = "Tenure elects one leader among the copies of a service, on NATS JetStream, object storage,\n" +
		"Kafka, etcd, SQL databases, Kubernetes, Redis or Valkey. This command wraps any program."
	// registry is the name of the image.
	registry = "ghcr.io/tenure-go/tenure"
	// user runs the image. A number, so that Kubernetes can see that it is not root.
	user = "65532:65532"
)

// buildTags are those of every binary. Without grpcnotrace the linker keeps all methods that a
// template might call. With timetzdata the binary contains the time zones.
const buildTags = "-tags=grpcnotrace,timetzdata"

// buildFlags are those of every binary.
var buildFlags = []string{"-trimpath", "-buildvcs=true", buildTags, "-ldflags=-s"}

// platform is an operating system and an architecture, in the words of Go.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

var host = platform{runtime.GOOS, runtime.GOARCH}

func (p platform) String() string { return p.os + "_" + p.arch }

// program returns the name of the binary.
func (p platform) program() string {
	if p.os == "windows" {
		return name + ".exe"
	}
	return name
}

// base returns the name of an artifact without its extension, such as tenure_0.1.0_linux_amd64.
func (r *release) base(p platform) string { return name + "_" + r.number() + "_" + p.String() }

// number returns the version without its v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }
