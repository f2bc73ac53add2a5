package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// source has the data that reflection does not provide: the names of all types, and the API version that introduced each type.
type source struct {
	names []string
	since map[string]string
}

var (
	structure = regexp.MustCompile(`(?m)^type (\w+) struct`)
	minimum   = regexp.MustCompile(`minAPIVersionForType\["(\w+)"\] = "([\d.]+)"`)
)

func readSource() (source, error) {
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/vmware/govmomi/vim25/types").Output()
	if err != nil {
		return source{}, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "types.go"))
	if err != nil {
		return source{}, err
	}
	read := source{since: map[string]string{}}
	for _, match := range structure.FindAllSubmatch(text, -1) {
		read.names = append(read.names, string(match[1]))
	}
	for _, match := range minimum.FindAllSubmatch(text, -1) {
		read.since[string(match[1])] = string(match[2])
	}
	return read, nil
}
