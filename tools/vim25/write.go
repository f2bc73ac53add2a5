package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const notice = "// Written by `make generate` (tools/vim25) from the vim25 types of govmomi. Do not edit.\n\n"

// typescript returns the TypeScript type of a field.
func (f field) typescript() string {
	kind := f.kind
	switch kind {
	case "byte", "short", "int", "long", "float", "double":
		kind = "number"
	case "dateTime":
		kind = "Date"
	case "base64Binary":
		kind = "string"
	case "anyType":
		kind = "unknown"
	}
	if f.list {
		return "readonly " + kind + "[]"
	}
	return kind
}

func (f field) member() string {
	mark := ""
	if f.optional {
		mark = "?"
	}
	return fmt.Sprintf("  readonly %s%s: %s;\n", f.name, mark, f.typescript())
}

// compact returns a field in the notation of the codec: name:type and flags.
func (f field) compact(enums map[string][]string) string {
	kind := f.kind
	if _, ok := enums[kind]; ok {
		kind = "string"
	}
	text := f.name + ":" + kind
	for _, flag := range []struct {
		set  bool
		text string
	}{{f.list, "*"}, {f.typed, "^"}, {f.optional, "?"}, {f.since != "", "@" + f.since}} {
		if flag.set {
			text += flag.text
		}
	}
	return text
}

// writeTypes exports the types as members of one interface, because most are not used by name.
func (s *schema) writeTypes(calls []call, objects []object) string {
	var out strings.Builder
	out.WriteString(notice)
	out.WriteString("export interface ManagedObjectReference<Type extends string = string> {\n" +
		"  readonly type: Type;\n  readonly value: string;\n}\n\n")
	out.WriteString("/** Base of all data types. */\nexport interface DataObject {\n" +
		"  /** Name of the type, when it is not the declared one. */\n  readonly _type?: string;\n}\n\n")
	s.writeByName(&out)
	writeCalls(&out, calls)
	writeProperties(&out, objects)
	for _, name := range slices.Sorted(maps.Keys(s.enums)) {
		fmt.Fprintf(&out, "type %s = '%s';\n\n", name, strings.Join(s.enums[name], "' | '"))
	}
	for _, name := range s.names() {
		if isMessage(name) {
			continue
		}
		fmt.Fprintf(&out, "interface %s extends %s {\n", name, cmp.Or(s.types[name].base, "DataObject"))
		for _, field := range s.types[name].fields {
			out.WriteString(field.member())
		}
		out.WriteString("}\n\n")
	}
	return out.String()
}

func (s *schema) writeByName(out *strings.Builder) {
	out.WriteString("/** The types by name: `Vim25['VirtualMachineCloneSpec']`. */\nexport interface Vim25 {\n")
	for _, name := range slices.Concat(s.names(), slices.Sorted(maps.Keys(s.enums))) {
		if !isMessage(name) {
			fmt.Fprintf(out, "  readonly %s: %s;\n", name, name)
		}
	}
	out.WriteString("}\n\n")
}

func writeCalls(out *strings.Builder, calls []call) {
	out.WriteString("/** Arguments and result of each method. */\nexport interface Calls {\n")
	for _, call := range calls {
		args := "Record<string, never>"
		if len(call.args) > 0 {
			args = "{\n"
			for _, field := range call.args {
				args += field.member()
			}
			args += "}"
		}
		result := "undefined"
		if call.result != nil {
			result = call.result.typescript()
			if call.result.optional && !call.result.list {
				result += " | undefined"
			}
		}
		fmt.Fprintf(out, "  readonly %s: { readonly args: %s; readonly result: %s };\n", call.name, args, result)
	}
	out.WriteString("}\n\n")
}

func writeProperties(out *strings.Builder, objects []object) {
	out.WriteString("/** The properties of managed objects, by type and path. */\nexport interface Properties {\n")
	for _, object := range objects {
		fmt.Fprintf(out, "  readonly %s: {\n", object.name)
		for _, field := range object.properties {
			name := field.name
			if strings.Contains(name, ".") {
				name = "'" + name + "'"
			}
			fmt.Fprintf(out, "    readonly %s: %s;\n", name, field.typescript())
		}
		out.WriteString("  };\n")
	}
	out.WriteString("}\n\n")
}

func (s *schema) writeSchema(version string, since map[string]string, others map[string][]string) string {
	var out strings.Builder
	out.WriteString(notice)
	fmt.Fprintf(&out, "/** Newest API version in this schema. */\nexport const KNOWN_VERSION = '%s';\n\n", version)
	out.WriteString("/**\n * Types by name: the base type, then the fields in the order of the WSDL. A field is `name:type` with flags: `*` list, `^`\n" +
		" * encoded with `xsi:type`, `?` optional, `@8.0.1.0` introduced in this API version.\n */\n")
	out.WriteString("export const TYPES: Readonly<Record<string, string>> = {\n")
	for _, name := range s.names() {
		words := []string{s.types[name].base}
		for _, field := range s.types[name].fields {
			words = append(words, field.compact(s.enums))
		}
		fmt.Fprintf(&out, "  %s: '%s',\n", name, strings.Join(words, " "))
	}
	out.WriteString("};\n\n/** API version that introduced a type, for types newer than 6.7. */\n")
	out.WriteString("export const SINCE: Readonly<Record<string, string>> = {\n")
	for _, name := range s.names() {
		if version, ok := since[name]; ok {
			fmt.Fprintf(&out, "  %s: '%s',\n", name, version)
		}
	}
	out.WriteString("};\n\n/** Types that are not in this schema, by their nearest base type in it. */\n")
	out.WriteString("export const SUBTYPES: Readonly<Record<string, string>> = {\n")
	for _, base := range slices.Sorted(maps.Keys(others)) {
		slices.Sort(others[base])
		fmt.Fprintf(&out, "  %s: '%s',\n", base, strings.Join(others[base], " "))
	}
	out.WriteString("};\n")
	return out.String()
}

func (s *schema) names() []string { return slices.Sorted(maps.Keys(s.types)) }

// isMessage reports whether a type holds the arguments or the response of a method.
func isMessage(name string) bool { return strings.Contains(name, "$") }
