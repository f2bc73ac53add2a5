package main

import (
	"net"
	"sync"
)

// connections is a listener that tracks its open connections. It is below TLS, so that a dropped connection ends without a TLS
// close notification, like a network failure.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
}

type connection struct {
	net.Conn
	owner *connections
}

func newConnections(listener net.Listener) *connections {
	return &connections{Listener: listener, open: map[*connection]struct{}{}}
}

func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: accepted, owner: c}
	c.mu.Lock()
	c.open[conn] = struct{}{}
	c.mu.Unlock()
	return conn, nil
}

// drop resets all open connections and returns their number.
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
	c.owner.mu.Lock()
	delete(c.owner.open, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
