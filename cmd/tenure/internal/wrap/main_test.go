//go:build unix

package wrap

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

func TestMain(m *testing.M) { guardtest.Main(m, guard.Main) }
