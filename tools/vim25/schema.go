package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// field is a field of a type. Fields are in the order of the WSDL, which vCenter requires.
type field struct {
	name, kind            string
	list, optional, typed bool // typed: encoded with xsi:type, because the value may be of a subtype
	since                 string
}

type definition struct {
	base   string
	fields []field
}

// schema contains all types that the listed items refer to.
type schema struct {
	types map[string]*definition
	enums map[string][]string
}

var (
	reference = reflect.TypeFor[types.ManagedObjectReference]()
	bytes     = reflect.TypeFor[types.ByteSlice]()
	instant   = reflect.TypeFor[time.Time]()
)

// reach adds a type and all types it refers to. It returns the name of the type in field declarations, and whether such fields
// are encoded with xsi:type.
func (s *schema) reach(t reflect.Type) (kind string, typed bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reference:
		return "ManagedObjectReference", false
	case t == instant:
		return "dateTime", false
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return "anyType", true
	case t.Kind() == reflect.Interface:
		name := strings.TrimPrefix(t.Name(), "Base")
		base, ok := types.TypeFunc()(name)
		if !ok {
			panic(fmt.Sprintf("no type %s behind %s", name, t.Name()))
		}
		s.reach(base)
		return name, true
	case t.Kind() == reflect.String && t.Name() != "string" && t.Name() != "URI":
		s.enum(t)
		return t.Name(), false
	case t.Kind() != reflect.Struct:
		return primitive(t), false
	}
	if _, known := s.types[t.Name()]; !known {
		s.types[t.Name()] = &definition{} // added before its fields, which may refer to the same type
		*s.types[t.Name()] = s.define(t)
	}
	return t.Name(), false
}

func (s *schema) define(t reflect.Type) definition {
	var result definition
	for i := range t.NumField() {
		member := t.Field(i)
		if member.Anonymous {
			if member.Type.Name() != "DynamicData" {
				result.base, _ = s.reach(member.Type)
			}
			continue
		}
		result.fields = append(result.fields, s.field(member))
	}
	return result
}

func (s *schema) field(member reflect.StructField) field {
	name, options, _ := strings.Cut(member.Tag.Get("xml"), ",")
	f := field{name: name, since: member.Tag.Get("vim")}
	flags := strings.Split(options, ",")
	t := member.Type
	f.optional = slices.Contains(flags, "omitempty") || t.Kind() == reflect.Pointer
	switch {
	case t == bytes:
		f.list, f.kind = true, "byte"
		return f
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		f.kind = "base64Binary"
		return f
	case t.Kind() == reflect.Slice:
		f.list, t = true, t.Elem()
	}
	f.kind, f.typed = s.reach(t)
	f.typed = f.typed || slices.Contains(flags, "typeattr")
	return f
}

func (s *schema) enum(t reflect.Type) {
	values := reflect.Zero(t).MethodByName("Values")
	if !values.IsValid() {
		panic(t.Name() + " has no method Values")
	}
	names := []string{}
	list := values.Call(nil)[0]
	for i := range list.Len() {
		names = append(names, list.Index(i).String())
	}
	s.enums[t.Name()] = names
}

func primitive(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int8, reflect.Uint8:
		return "byte"
	case reflect.Int16:
		return "short"
	case reflect.Int32:
		return "int"
	case reflect.Int64:
		return "long"
	case reflect.Float32:
		return "float"
	case reflect.Float64:
		return "double"
	}
	panic("no XML type for " + t.String())
}

// property returns the field at a path such as config.hardware.numCPU.
func (s *schema) property(object any, path string) field {
	t := reflect.TypeOf(object)
	names := strings.Split(path, ".")
	for i, name := range names {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Interface {
			t, _ = types.TypeFunc()(strings.TrimPrefix(t.Name(), "Base"))
		}
		member, ok := t.FieldByNameFunc(func(candidate string) bool {
			return strings.EqualFold(candidate, name)
		})
		if !ok {
			panic(fmt.Sprintf("%s has no property %s", reflect.TypeOf(object).Name(), path))
		}
		t = member.Type
		if i == len(names)-1 {
			read := s.field(member)
			read.name = path
			return read
		}
	}
	panic("empty property path")
}
