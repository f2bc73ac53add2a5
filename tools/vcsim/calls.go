package main

import (
	"bytes"
	"encoding/xml"
	"maps"
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// call is the method and target object of a SOAP request, read from its body because SOAPAction has only the API version.
type call struct {
	method string
	object types.ManagedObjectReference
}

// readCall parses the start of a SOAP body. For a body that is not SOAP it returns an empty call; the simulator responds with
// the fault.
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
			// The object's type is the attribute `type` without a namespace; xsi:type may be present as well.
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

// calls counts calls by method, including failed ones.
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
