package k8slease

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

// The frames of HTTP/2 that the test needs.
const (
	frameData, frameHeaders, frameReset, frameSettings, frameGoAway = 0, 1, 3, 4, 7

	flagAck, flagEndStream        = 1, 1
	reasonProtocol, reasonRefused = 1, 7
)

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = binary.BigEndian.AppendUint32(append(head, flags), stream)
	return append(head, payload...)
}

// TestNoRepeatedWrite: package http sends a request of HTTP/2 again if a server says that it has
// not processed it. A proxy may say so after it has passed a write on. The store sends no write
// again, and the outcome stays open.
func TestNoRepeatedWrite(t *testing.T) {
	for name, answer := range map[string]func(stream uint32) []byte{
		"refused stream": func(stream uint32) []byte { return frame(frameReset, 0, stream, 0, 0, 0, reasonRefused) },
		"protocol error": func(stream uint32) []byte { return frame(frameReset, 0, stream, 0, 0, 0, reasonProtocol) },
		"going away":     func(uint32) []byte { return frame(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			address, writes := http2(t, answer)
			s, err := New(&rest.Config{Host: "https://" + address, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "test")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err = s.CompareAndSwap(ctx, "a", "", []byte("x"))
			if err == nil || ctx.Err() != nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) {
				t.Errorf("got %v", err)
			}
			if n := writes.Load(); n != 1 {
				t.Errorf("the write was sent %d times", n)
			}
		})
	}
}

// http2 runs a server that takes whole requests, and answers each with a frame. It counts them.
func http2(t *testing.T, answer func(stream uint32) []byte) (address string, requests *atomic.Int64) {
	t.Helper()
	_, cert, key := certificates.New(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests = new(atomic.Int64)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serveFrames(c, answer, requests)
			}()
		}
	}()
	return listener.Addr().String(), requests
}

// serveFrames ends with the connection.
func serveFrames(c net.Conn, answer func(stream uint32) []byte, requests *atomic.Int64) {
	const preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if _, err := io.CopyN(io.Discard, c, int64(preface)); err != nil {
		return
	}
	_, _ = c.Write(frame(frameSettings, 0, 0))
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		length, kind := binary.BigEndian.Uint32(head[:])>>8, head[3]
		if _, err := io.CopyN(io.Discard, c, int64(length)); err != nil {
			return
		}
		switch {
		case kind == frameSettings && head[4]&flagAck == 0:
			_, _ = c.Write(frame(frameSettings, flagAck, 0))
		case (kind == frameData || kind == frameHeaders) && head[4]&flagEndStream != 0:
			requests.Add(1)
			_, _ = c.Write(answer(binary.BigEndian.Uint32(head[5:])))
		}
	}
}
