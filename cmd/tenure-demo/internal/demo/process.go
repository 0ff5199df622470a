package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
)

// process is the process of a candidate. Its standard input stays open as long as the demo lives;
// when the demo dies, the process reads the end of it and ends, too.
type process struct {
	id     string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	paused bool
	ending bool // the demo has asked it to end, or killed it
}

// launch starts a process and sends it its spec. Its standard error goes to output line by line.
func launch(cmd *exec.Cmd, s spec, output func(string)) (*process, error) {
	separate(cmd)
	p := &process{id: s.ID, cmd: cmd}
	cmd.Stderr = &lines{each: output}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = json.NewEncoder(p.in).Encode(s) // fails if the process has died; then listen returns
	return p, nil
}

// listen passes on the reports of the process until it has ended, and returns its exit error.
func (p *process) listen(hear func(report), other func(string)) error {
	scan := bufio.NewScanner(p.out)
	for scan.Scan() {
		var r report
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			other(scan.Text())
			continue
		}
		hear(r)
	}
	_, _ = io.Copy(io.Discard, p.out)
	return p.cmd.Wait()
}

// kill needs no cooperation of the process.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// lines cuts the written text into lines.
type lines struct {
	each func(string)
	part []byte
}

// Write takes any part of the text.
func (l *lines) Write(text []byte) (int, error) {
	l.part = append(l.part, text...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		l.each(string(line))
		l.part = bytes.Clone(rest)
	}
}
