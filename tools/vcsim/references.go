package main

import (
	"reflect"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// answersMissing are the methods that have an answer of their own for objects which are not there: the views list
// them, and a reading may ask for no fault.
var answersMissing = []string{
	"CreateListView", "ModifyListView", "ResetListView",
	"CreateFilter", "RetrieveProperties", "RetrievePropertiesEx", "Fetch",
}

// refuseMissing answers a call that names an object which is not there, as vCenter does. The simulator panics on many
// such calls, and then keeps the lock of the object called: whoever asks for a clone on a host that was just removed
// would find the template locked for ever, and who marks a folder that is gone, all custom attributes.
func refuseMissing(ctx *simulator.Context, method *simulator.Method) types.BaseMethodFault {
	if ctx.Session == nil || slices.Contains(answersMissing, method.Name) {
		return nil
	}
	for _, reference := range references(reflect.ValueOf(method.Body)) {
		if ctx.Session.Get(reference) == nil {
			return &types.ManagedObjectNotFound{Obj: reference}
		}
	}
	return nil
}

// references finds those in a request, however deep.
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
