package journal

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// flushAt is the size of replies that are sent before the pipeline is through.
const flushAt = 256 << 10

// client is one connection. Its goroutine alone touches it.
type client struct {
	net  net.Conn
	in   *bufio.Reader
	out  bytes.Buffer // replies not yet sent
	peer *server.Peer // writes to out
	need uint64       // the record that must be written before out is sent

	tx      [][]string // what MULTI queued
	inTx    bool
	dirtyTx bool
	quit    bool
}

func newClient(c net.Conn) *client {
	cl := &client{net: c, in: bufio.NewReaderSize(c, 64<<10)}
	cl.peer = server.NewPeer(bufio.NewWriterSize(&cl.out, 16<<10))
	return cl
}

// serve runs the client's commands until it goes. Replies wait for the journal;
// a pipeline's commands share one write.
func (s *Server) serve(c *client) {
	for !c.quit {
		words, err := readCommand(c.in)
		if err != nil {
			if errors.Is(err, errProtocol) {
				c.peer.WriteError("ERR " + err.Error())
				s.send(c)
			}
			return
		}
		if !s.handle(c, words) {
			return
		}
		if c.quit || c.in.Buffered() == 0 || c.out.Len() > flushAt {
			if !s.send(c) {
				return
			}
		}
	}
}

// send makes durable what the replies tell of, then sends them. On failure the
// client must be dropped without a reply: it cannot know what became of its
// commands, as with any lost connection.
func (s *Server) send(c *client) bool {
	c.peer.Flush()
	if err := s.log.reach(c.need); err != nil {
		return false
	}
	_, err := io.Copy(c.net, &c.out)
	if c.out.Cap() > 4*flushAt {
		c.out = bytes.Buffer{}
	}
	return err == nil
}

// handle runs one request; false if the connection must be dropped.
func (s *Server) handle(c *client, words []string) bool {
	name := strings.ToUpper(words[0])
	words[0] = name
	switch name {
	case "MULTI":
		switch {
		case len(words) != 1:
			s.reject(c, "ERR wrong number of arguments for 'multi' command")
		case c.inTx:
			c.peer.WriteError("ERR MULTI calls can not be nested")
		default:
			c.inTx, c.dirtyTx, c.tx = true, false, nil
			c.peer.WriteOK()
		}
		return true
	case "EXEC", "DISCARD":
		return s.endTx(c, name)
	case "QUIT":
		c.peer.WriteOK()
		c.quit = true
		return true
	}
	if c.inTx {
		if k := kinds[name]; k == unsupported || k == session && name != "SCRIPT" {
			s.reject(c, refusal(name))
			return true
		}
		c.tx = append(c.tx, words)
		c.peer.WriteInline("QUEUED")
		return true
	}
	return s.exec(c, false, words)
}

// reject answers an error; in a MULTI it makes EXEC fail.
func (s *Server) reject(c *client, msg string) {
	c.dirtyTx = true
	c.peer.WriteError(msg)
}

func (s *Server) endTx(c *client, name string) bool {
	queued, dirty, open := c.tx, c.dirtyTx, c.inTx
	c.tx, c.inTx, c.dirtyTx = nil, false, false
	switch {
	case !open:
		c.peer.WriteError("ERR " + name + " without MULTI")
	case name == "DISCARD":
		c.peer.WriteOK()
	case dirty:
		c.peer.WriteError("EXECABORT Transaction discarded because of previous errors.")
	default:
		return s.exec(c, true, queued...)
	}
	return true
}

// own answers the session commands that miniredis lacks or that must not reach it.
func (s *Server) own(p *server.Peer, words []string) bool {
	switch words[0] {
	case "UNWATCH", "AUTH":
		p.WriteOK()
	case "SELECT":
		if len(words) != 2 || words[1] != "0" {
			p.WriteError("ERR the embedded Redis has one database, 0")
			return true
		}
		p.WriteOK()
	case "CONFIG":
		s.config(p, words)
	case "INFO":
		p.WriteBulk(s.info())
	default:
		return false
	}
	return true
}

func (s *Server) config(p *server.Peer, words []string) {
	if len(words) < 3 || !strings.EqualFold(words[1], "GET") {
		p.WriteError("ERR the embedded Redis is configured by its options; only CONFIG GET is supported")
		return
	}
	values := map[string]string{
		"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "databases": "1",
	}
	var found []string
	for _, w := range words[2:] {
		if v, ok := values[strings.ToLower(w)]; ok {
			found = append(found, strings.ToLower(w), v)
		}
	}
	p.WriteMapLen(len(found) / 2)
	for _, w := range found {
		p.WriteBulk(w)
	}
}

func (s *Server) info() string {
	return "# Server\r\nredis_version:7.0.0\r\nredis_mode:standalone\r\nrun_id:" + s.runID + "\r\n" +
		"# Clients\r\nconnected_clients:" + strconv.Itoa(s.clients()) + "\r\n" +
		"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n" +
		"# Persistence\r\nloading:0\r\naof_enabled:1\r\n" +
		"# Replication\r\nrole:master\r\n"
}
