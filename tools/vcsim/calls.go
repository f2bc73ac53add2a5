package main

import (
	"bytes"
	"encoding/xml"
	"maps"
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// call is what a SOAP request asks for. Its SOAPAction names no more than the API's version, so the body tells.
type call struct {
	method string
	object types.ManagedObjectReference
}

// readCall reads no further than it must. A body that is not SOAP gives an empty call; the simulator has the fault for it.
func readCall(body []byte) call {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	inBody := false
	var read call
	for {
		token, err := decoder.Token()
		if err != nil {
			return read
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case !inBody:
			inBody = start.Name.Local == "Body"
		case read.method == "":
			read.method = start.Name.Local
		case start.Name.Local == "_this":
			// `type` without a namespace is the object's; xsi:type may stand beside it.
			for _, attribute := range start.Attr {
				if attribute.Name.Space == "" && attribute.Name.Local == "type" {
					read.object.Type = attribute.Value
				}
			}
			var value string
			if decoder.DecodeElement(&value, &start) == nil {
				read.object.Value = value
			}
			return read
		default:
			return read
		}
	}
}

// calls counts what clients ask for, whatever they are answered.
type calls struct {
	mu       sync.Mutex
	byMethod map[string]int
}

func (c *calls) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byMethod == nil {
		c.byMethod = map[string]int{}
	}
	c.byMethod[method]++
}

func (c *calls) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	maps.Copy(counts, c.byMethod)
	return counts
}

func (c *calls) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byMethod = nil
}
