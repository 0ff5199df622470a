package natsd

import "github.com/tenure-go/tenure/test/internal/machine"

// Kill ends the process by SIGKILL. It may be called twice.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return // it was never started
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop shuts the server down, as an operator does: the server hands over its streams and leaves.
// Stop returns when the process is gone.
func (s *Server) Stop() error {
	if _, err := s.in.Write([]byte("stop\n")); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// Pause stops the server by SIGSTOP: it stays connected and silent. It needs Linux.
func (s *Server) Pause() error { return machine.Pause(s.PID()) }

// Resume continues a paused server.
func (s *Server) Resume() error { return machine.Resume(s.PID()) }
