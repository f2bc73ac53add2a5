// Runs a health check of Argo CD: reads a script and objects as JSON from standard input and writes the health of each object as JSON.
package main

import (
	"encoding/json"
	"log"
	"os"

	lua "github.com/yuin/gopher-lua"
)

type request struct {
	Script  string `json:"script"`
	Objects []any  `json:"objects"`
}

type health struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message"`
	Error   string `json:"error,omitempty"`
}

func main() {
	log.SetFlags(0)
	var input request
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		log.Fatalf("standard input is not a request: %v", err)
	}
	results := make([]health, 0, len(input.Objects))
	for _, object := range input.Objects {
		results = append(results, check(input.Script, object))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}

// check runs the script with the object as the global `obj`.
func check(script string, object any) health {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	// The libraries that Argo CD opens for a check in argocd-cm, without its restricted `os`. There is no `string` and no `math`.
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		state.Push(state.NewFunction(library.open))
		state.Push(lua.LString(library.name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", valueOf(state, object))
	if err := state.DoString(script); err != nil {
		return health{Error: err.Error()}
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return health{Error: "the script returned no table"}
	}
	return health{
		Status:  lua.LVAsString(result.RawGetString("status")),
		Message: lua.LVAsString(result.RawGetString("message")),
	}
}

// valueOf converts a value of encoding/json to Lua.
func valueOf(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.NewTable()
		for _, item := range typed {
			table.Append(valueOf(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, item := range typed {
			table.RawSetString(key, valueOf(state, item))
		}
		return table
	}
	return lua.LNil
}
