//go:build tools

// Package tools pins the program that the testbed builds from this module.
package tools

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
