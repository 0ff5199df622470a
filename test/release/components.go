package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// describe lists the components of each artifact, in a file of CycloneDX beside it.
func (r *release) describe() error {
	for _, a := range r.artifacts {
		if err := r.components(a); err != nil {
			return err
		}
	}
	return nil
}

// components writes the list of one artifact. It has neither a serial number nor a time, so that it
// is the same in each build.
func (r *release) components(a artifact) error {
	generator, err := bin.NewGenerator(a.binary, bin.WithIncludeStdlib(true), bin.WithLogger(zerolog.Nop()))
	if err != nil {
		return err
	}
	list, err := generator.Generate()
	if err != nil {
		return err
	}
	sum, err := digest(filepath.Join(r.into, a.file))
	if err != nil {
		return err
	}
	program := *list.Metadata.Component
	program.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}}
	all := append([]cyclonedx.Component{program}, *list.Components...)
	list.Components = &all
	list.Metadata.Component = &cyclonedx.Component{
		BOMRef: a.file, Type: cyclonedx.ComponentTypeFile, Name: a.file, Version: r.version,
		Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}},
	}
	if list.Dependencies != nil {
		*list.Dependencies = append(*list.Dependencies, cyclonedx.Dependency{Ref: a.file, Dependencies: &[]string{program.BOMRef}})
	}
	return r.save(a.components(), func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(list)
	})
}

// components returns the name of the file that lists the components. The image has one for each
// architecture.
func (a artifact) components() string {
	if base, ok := strings.CutSuffix(a.file, "_image.tar"); ok {
		return base + "_image_" + a.platform.arch + ".cdx.json"
	}
	return a.file + ".cdx.json"
}
