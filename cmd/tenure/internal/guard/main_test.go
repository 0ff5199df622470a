//go:build unix

package guard

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
)

func TestMain(m *testing.M) { guardtest.Main(m, Main) }
