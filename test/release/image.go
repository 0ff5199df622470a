package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// images makes one image for all architectures of Linux, as an archive in the layout of OCI.
func (r *release) images(binaries map[platform]string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var file string
	for _, p := range platforms {
		if p.os != "linux" || binaries[p] == "" {
			continue
		}
		image, err := r.image(p, binaries[p])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		file = name + "_" + r.number() + "_image.tar"
		r.artifacts = append(r.artifacts, artifact{file, p, binaries[p]})
	}
	if file == "" {
		return nil
	}
	index = mutate.Annotations(index, r.labels()).(v1.ImageIndex)
	work, err := os.MkdirTemp("", "tenure-image-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	top, err := layout.Write(work, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{
		"org.opencontainers.image.ref.name": r.number(), "io.containerd.image.name": registry + ":" + r.number(),
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	return r.archiveOf(work, file)
}

// labels are those that registries and scanners read.
func (r *release) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": name, prefix + "description": summary, prefix + "licenses": license,
		prefix + "url": homepage, prefix + "source": homepage, prefix + "documentation": homepage + "/blob/" + r.version + "/docs/README.md",
		prefix + "version": r.number(), prefix + "revision": r.commit, prefix + "created": r.time.Format("2006-01-02T15:04:05Z"),
	}
}

// image returns the image of an architecture: the program, and the certificates of authorities that
// stores with TLS are checked against. The program contains the time zones.
func (r *release) image(p platform, binary string) (v1.Image, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	own, err := r.read("LICENSE")
	if err != nil {
		return nil, err
	}
	others, err := r.licenses(p)
	if err != nil {
		return nil, err
	}
	base := []entry{
		{"etc/ssl/certs/ca-certificates.crt", authorities(), 0o644},
		{"licenses/LICENSE", own, 0o644},
		{"licenses/THIRD-PARTY-LICENSES", others, 0o644},
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]entry{base, {{"tenure", program, 0o755}}} {
		var content bytes.Buffer
		if err := untimed(&content, r.time, files); err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(content.Bytes())), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{User: user, Entrypoint: []string{"/tenure"}, Labels: r.labels(), WorkingDir: "/"}
	return mutate.ConfigFile(image, config)
}

// authorities returns Mozilla's list of certificates, as Go publishes it. An authority that Mozilla
// trusts under conditions is left out, since the file cannot state them.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// archiveOf writes a directory into an archive without compression: its layers are compressed
// already.
func (r *release) archiveOf(dir, file string) error {
	var all []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, entry{path[len(dir)+1:], content, 0o644})
		return err
	})
	if err != nil {
		return err
	}
	return r.save(file, func(w io.Writer) error { return untimed(w, r.time, all) })
}
