package s3d

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of server, or of several that work together.
type Kind string

const (
	// Versity is one versitygw over a directory.
	Versity Kind = "versity"
	// Versity2 is two versitygw over one directory, each with a URL of its own.
	Versity2 Kind = "versity2"
	// MinIO is one server over a directory.
	MinIO Kind = "minio"
	// Rclone is `rclone serve s3` over a directory. It ignores conditions.
	Rclone Kind = "rclone"
	// Azurite is versitygw in front of azurite. It checks a condition before it writes, so two
	// writes at once can both succeed.
	Azurite Kind = "azurite"
	// Stub is a handler in this process that keeps objects and ignores conditions.
	Stub Kind = "stub"
)

// Kinds returns all kinds, the default first.
func Kinds() []Kind { return []Kind{Versity, Versity2, MinIO, Rclone, Azurite, Stub} }

// KindOf returns the kind with a name. For any other name, the error lists the names.
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

// layout returns the processes of a kind. Each process needs those before it. The list is empty for
// a handler in this process.
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
