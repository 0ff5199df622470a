package output

import (
	"os"

	"golang.org/x/sys/windows"
)

// prepare makes the console understand the sequences that change colors. It returns false for an
// old console, which cannot.
func prepare(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
