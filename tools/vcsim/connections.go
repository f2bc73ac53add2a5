package main

import (
	"net"
	"sync"
)

// connections is a listener that knows what it has accepted. It sits below TLS, so that a dropped connection ends as
// a cut line does: without a goodbye.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
}

type connection struct {
	net.Conn
	of *connections
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}}
}

func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: accepted, of: c}
	c.mu.Lock()
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	return conn, nil
}

// drop resets every open connection and says how many there were.
func (c *connections) drop() int {
	c.mu.Lock()
	dropped := make([]*connection, 0, len(c.open))
	for conn := range c.open {
		dropped = append(dropped, conn)
	}
	c.mu.Unlock()
	for _, conn := range dropped {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	return len(dropped)
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
