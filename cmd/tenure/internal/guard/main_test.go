//go:build unix

package guard

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
)

func TestMain(m *testing.M) { guardtest.Main(m, Main) }
