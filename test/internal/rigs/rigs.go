// Package rigs lists the rigs of all stores, for the tests of every store, the battery and the
// bench.
package rigs

import (
	"slices"

	"github.com/tenure-go/tenure/test/internal/azured"
	"github.com/tenure-go/tenure/test/internal/dynamod"
	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/gcsd"
	"github.com/tenure-go/tenure/test/internal/k8sd"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// All returns them. A new store is one line more here, and its name is in a step of .ci/run and in
// docs/testing.md.
func All() []rig.Rig {
	return append(slices.Concat([]rig.Rig{rig.Memory()}, sqld.Rigs(), s3d.Rigs(), etcdd.Rigs(), redisd.Rigs(), k8sd.Rigs(), gcsd.Rigs(), azured.Rigs(), dynamod.Rigs()),
		natsd.One(),
		natsd.Three(),
		kafkad.Rig(),
	)
}

// Kind returns how programs run the rig with a name. It is zero if there is none, or if they do
// not.
func Kind(name string) rig.Kind {
	for _, r := range All() {
		if r.Name == name {
			return r.Kind
		}
	}
	return rig.Kind{}
}
