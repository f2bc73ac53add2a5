package main

import (
	"reflect"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// handlesMissing are the methods that handle missing objects themselves: views may list them, and property reads can report them
// without a fault.
var handlesMissing = []string{
	"CreateListView", "ModifyListView", "ResetListView",
	"CreateFilter", "RetrieveProperties", "RetrievePropertiesEx", "Fetch",
}

// rejectMissing returns ManagedObjectNotFound for a call with a missing object in its arguments, as vCenter does. The simulator
// panics on many such calls and never releases the lock of the called object: a clone to a removed host would leave the template
// locked, and setting a custom attribute of a removed folder would leave all custom attributes locked.
func rejectMissing(ctx *simulator.Context, method *simulator.Method) types.BaseMethodFault {
	if ctx.Session == nil || slices.Contains(handlesMissing, method.Name) {
		return nil
	}
	for _, reference := range references(reflect.ValueOf(method.Body)) {
		if ctx.Session.Get(reference) == nil {
			return &types.ManagedObjectNotFound{Obj: reference}
		}
	}
	return nil
}

// references returns all object references in a request, at any depth.
func references(value reflect.Value) []types.ManagedObjectReference {
	var found []types.ManagedObjectReference
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			found = references(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			found = append(found, references(value.Index(i))...)
		}
	case reflect.Struct:
		if reference, ok := value.Interface().(types.ManagedObjectReference); ok {
			return []types.ManagedObjectReference{reference}
		}
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				found = append(found, references(value.Field(i))...)
			}
		}
	}
	return found
}
