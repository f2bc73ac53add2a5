// Command vim25 generates the vSphere API types of packages/vsphere from govmomi's types. It prints a JSON object with the
// text of each file by name; tools/vim25/main.ts formats and writes the files.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

type call struct {
	name   string
	args   []field
	result *field
}

type object struct {
	name       string
	properties []field
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vim25:", err)
		os.Exit(1)
	}
}

func run() error {
	read, err := readSource()
	if err != nil {
		return fmt.Errorf("cannot read govmomi's types: %w", err)
	}
	s := &schema{types: map[string]*definition{}, enums: map[string][]string{}}
	for _, each := range subtypes {
		s.reach(reflect.TypeOf(each))
	}
	methods := []call{}
	for _, body := range calls {
		methods = append(methods, s.call(body))
	}
	objects := []object{}
	for _, each := range properties {
		object := object{name: reflect.TypeOf(each.object).Name()}
		for _, path := range each.paths {
			object.properties = append(object.properties, s.property(each.object, path))
		}
		objects = append(objects, object)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]string{
		"vim25.generated.ts":  s.writeTypes(methods, objects),
		"schema.generated.ts": s.writeSchema(vim25.Version, read.since, s.others(read.names)),
	})
}

// call adds the arguments and the response of a method to the schema, under names that begin with $, as no type name does.
func (s *schema) call(body any) call {
	t := reflect.TypeOf(body)
	c := call{name: strings.TrimSuffix(t.Name(), "Body")}
	request, _ := t.FieldByName("Req")
	args := s.define(request.Type.Elem())
	s.types["$"+c.name] = &args
	c.args = args.fields[1:] // without _this, which callers pass separately

	response, _ := t.FieldByName("Res")
	result := s.define(response.Type.Elem())
	s.types["$"+c.name+"Response"] = &result
	if len(result.fields) > 0 {
		c.result = &result.fields[0]
	}
	return c
}

// others returns the types that are not in the schema, by their nearest base type in it.
func (s *schema) others(names []string) map[string][]string {
	found := map[string][]string{}
	for _, name := range names {
		if _, known := s.types[name]; known {
			continue
		}
		t, ok := types.TypeFunc()(name)
		for ok && t.NumField() > 0 && t.Field(0).Anonymous {
			t = t.Field(0).Type
			if _, known := s.types[t.Name()]; known {
				found[t.Name()] = append(found[t.Name()], name)
				break
			}
		}
	}
	return found
}
