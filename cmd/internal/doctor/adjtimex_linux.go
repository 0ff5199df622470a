package doctor

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// timeOfDay asks the kernel, and changes nothing.
func timeOfDay() (synchronization, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return synchronization{}, fmt.Errorf("adjtimex: %w", err)
	}
	return synchronization{
		synchronized: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		maxError:     time.Duration(t.Maxerror) * time.Microsecond,
		rate:         float64(t.Freq) / (1 << 16),
	}, nil
}
