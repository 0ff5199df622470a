//go:build unix

package wrap

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard/guardtest"
)

func TestMain(m *testing.M) { guardtest.Main(m, guard.Main) }
