package natsnet

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// Play returns the URL of a server that the test plays. For each message that a client publishes,
// answer is called in a goroutine of its own. It returns the answer, nil for none.
func Play(t testing.TB, answer func(*nats.Msg) []byte) (url string) {
	t.Helper()
	address := Inside.Address()
	var ended sync.WaitGroup
	t.Cleanup(ended.Wait)
	Inside.Put(t, address, func() (net.Conn, error) {
		theirs, ours := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		p := &played{conn: ours, answer: answer, ids: map[string]string{}}
		ended.Go(p.serve)
		return theirs, nil
	})
	return "nats://" + address
}

// played is one connection to a server that a test plays.
type played struct {
	conn   net.Conn
	answer func(*nats.Msg) []byte

	mu  sync.Mutex
	ids map[string]string // of subscriptions, by their subjects
}

// serve ends with the connection.
func (p *played) serve() {
	defer func() { _ = p.conn.Close() }()
	go p.write(`INFO {"server_id":"played","version":"2.15.2","headers":true,"max_payload":1048576}` + "\r\n")
	lines := bufio.NewReader(p.conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch words[0] {
		case "PING":
			go p.write("PONG\r\n")
		case "SUB":
			p.mu.Lock()
			p.ids[strings.TrimSuffix(words[1], "*")] = words[len(words)-1]
			p.mu.Unlock()
		case "PUB", "HPUB":
			m, err := message(words, lines)
			if err != nil {
				return
			}
			go p.respond(m)
		}
	}
}

// message reads the rest of a message.
func message(words []string, from *bufio.Reader) (*nats.Msg, error) {
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, err
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(from, body); err != nil {
		return nil, err
	}
	m := nats.NewMsg(words[1])
	m.Data = body[:size]
	sizes := 1
	if words[0] == "HPUB" {
		sizes = 2
		header, err := strconv.Atoi(words[len(words)-2])
		if err != nil {
			return nil, err
		}
		if m.Header, err = nats.DecodeHeadersMsg(m.Data[:header]); err != nil {
			return nil, err
		}
		m.Data = m.Data[header:]
	}
	if len(words) > 2+sizes {
		m.Reply = words[2]
	}
	return m, nil
}

// respond sends an answer to the subscription for it.
func (p *played) respond(m *nats.Msg) {
	text := p.answer(m)
	if text == nil || m.Reply == "" {
		return
	}
	p.mu.Lock()
	id, ok := p.ids[m.Reply]
	if !ok {
		id = p.ids[m.Reply[:strings.LastIndexByte(m.Reply, '.')+1]]
	}
	p.mu.Unlock()
	p.write(fmt.Sprintf("MSG %s %s %d\r\n%s\r\n", m.Reply, id, len(text), text))
}

// write sends one message. It fails only without a connection.
func (p *played) write(text string) { _, _ = io.WriteString(p.conn, text) }
