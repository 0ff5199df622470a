package output

import (
	"os"

	"golang.org/x/sys/windows"
)

// prepare makes the console understand the sequences that change colours. An old one cannot.
func prepare(f *os.File) bool {
	var mode uint32
	h := windows.Handle(f.Fd())
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
