package natsd

import "github.com/tenure-go/tenure/test/internal/machine"

// Kill is the end of a process that cannot do anything about it. It may be called twice.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return // it was never started
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop ends the server as an operator does: it hands over its streams, and leaves. It returns when
// the process is gone.
func (s *Server) Stop() error {
	if _, err := s.in.Write([]byte("stop\n")); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// Pause stops the server in its tracks, as SIGSTOP does: it stays connected and silent. It needs
// Linux.
func (s *Server) Pause() error { return machine.Pause(s.PID()) }

// Resume lets a paused server go on.
func (s *Server) Resume() error { return machine.Resume(s.PID()) }
