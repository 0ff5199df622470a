package s3d

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a server, or an arrangement of them.
type Kind string

const (
	// Versity is one versitygw over a directory.
	Versity Kind = "versity"
	// Versity2 is two of them over one directory, each with a URL of its own.
	Versity2 Kind = "versity2"
	// MinIO is one server over a directory.
	MinIO Kind = "minio"
	// Rclone is `rclone serve s3` over a directory. It ignores conditions.
	Rclone Kind = "rclone"
	// Azurite is versitygw in front of azurite. It checks conditions before it writes, and so loses
	// races.
	Azurite Kind = "azurite"
	// Stub is a handler in this process that keeps objects and ignores conditions.
	Stub Kind = "stub"
)

// Kinds are all kinds, the default first.
func Kinds() []Kind { return []Kind{Versity, Versity2, MinIO, Rclone, Azurite, Stub} }

// KindOf is the kind of a name. It returns an error that lists them for any other name.
func KindOf(name string) (Kind, error) {
	if k := Kind(name); slices.Contains(Kinds(), k) {
		return k, nil
	}
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return "", fmt.Errorf("there is no server %q: there are %s", name, strings.Join(names, ", "))
}

// layout is the list of the processes of a kind; each needs those before it. Without any it is a
// handler in this process.
func (k Kind) layout() []program {
	switch k {
	case Versity:
		return []program{versityOverFiles}
	case Versity2:
		return []program{versityOverFiles, versityOverFiles}
	case MinIO:
		return []program{minioOverFiles}
	case Rclone:
		return []program{rcloneOverFiles}
	case Azurite:
		return []program{azuriteInMemory, versityOverAzurite}
	}
	return nil
}
