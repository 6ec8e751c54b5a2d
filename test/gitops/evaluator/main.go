// Command evaluator says how Argo CD, Flux and kstatus see objects. It reads one request from stdin and answers on
// stdout, as JSON:
//
//	{"lua": "…", "expressions": {"inProgress": "…", "failed": "…", "current": "…"}, "objects": [{…}]}
//	[{"argocd": {"status": "Healthy", "message": "…"}, "flux": "Current", "kstatus": "Current"}]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type expressions struct {
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

type request struct {
	Lua         string                      `json:"lua"`
	Expressions expressions                 `json:"expressions"`
	Objects     []unstructured.Unstructured `json:"objects"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type verdict struct {
	ArgoCD  health `json:"argocd"`
	Flux    string `json:"flux"`
	Kstatus string `json:"kstatus"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "evaluator:", err)
		os.Exit(1)
	}
}

func run() error {
	var in request
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return fmt.Errorf("stdin is not a request: %w", err)
	}
	flux, err := newFlux(in.Expressions)
	if err != nil {
		return err
	}
	verdicts := []verdict{}
	for _, object := range in.Objects {
		argocd, err := argocdHealth(in.Lua, object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", object.GetName(), err)
		}
		computed, err := status.Compute(&object)
		if err != nil {
			return fmt.Errorf("%s: kstatus: %w", object.GetName(), err)
		}
		verdicts = append(verdicts, verdict{
			ArgoCD:  argocd,
			Flux:    string(flux.health(object.Object)),
			Kstatus: string(computed.Status),
		})
	}
	return json.NewEncoder(os.Stdout).Encode(verdicts)
}

// Argo CD runs a health check of argocd-cm for at most a second, with the base and table libraries alone: without
// useOpenLibs there are neither strings nor math.
func argocdHealth(script string, object map[string]any) (health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}} {
		state.Push(state.NewFunction(library.open))
		state.Push(lua.LString(library.name))
		state.Call(1, 0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(script); err != nil {
		return health{}, fmt.Errorf("the Lua script failed: %w", err)
	}
	table, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return health{}, errors.New("the Lua script must return a table")
	}
	result := health{Status: table.RawGetString("status").String()}
	if message, isString := table.RawGetString("message").(lua.LString); isString {
		result.Message = string(message)
	}
	switch result.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown":
		return result, nil
	}
	return health{}, fmt.Errorf("the Lua script must return a health of Argo CD, got %q", result.Status)
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, item := range value {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	}
	return lua.LNil
}

// Flux asks inProgress, failed and current in this order. It waits where an observed generation differs, where none of
// them holds, and where one fails: it cannot know what a missing field means.
type flux struct {
	programs []cel.Program
	statuses []status.Status
}

func newFlux(from expressions) (*flux, error) {
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		return nil, err
	}
	result := &flux{}
	for _, one := range []struct {
		text string
		says status.Status
	}{
		{from.InProgress, status.InProgressStatus},
		{from.Failed, status.FailedStatus},
		{from.Current, status.CurrentStatus},
	} {
		// Flux does not compile them either: an object may have any fields.
		parsed, issues := env.Parse(one.text)
		if issues.Err() != nil {
			return nil, fmt.Errorf("%q: %w", one.text, issues.Err())
		}
		program, err := env.Program(parsed, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", one.text, err)
		}
		result.programs = append(result.programs, program)
		result.statuses = append(result.statuses, one.says)
	}
	return result, nil
}

func (f *flux) health(object map[string]any) status.Status {
	observed, hasObserved, _ := unstructured.NestedInt64(object, "status", "observedGeneration")
	generation, hasGeneration, _ := unstructured.NestedInt64(object, "metadata", "generation")
	if hasObserved && hasGeneration && observed != generation {
		return status.InProgressStatus
	}
	for at, program := range f.programs {
		value, _, err := program.Eval(object)
		if err != nil {
			return status.UnknownStatus
		}
		if value == types.True {
			return f.statuses[at]
		}
	}
	return status.InProgressStatus
}
