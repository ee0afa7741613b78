/* SPDX-License-Identifier: LicenseRef-Undeclared */
// render CHART RELEASE NAMESPACE [VALUES]...: renders a chart as `helm template` does, for the subset that the chart uses.
// Helm itself is in no package of Debian; its parts are: Go's templates, sprig's functions, the YAML and the JSON
// schema library. What Helm adds is here: merged values, include, required, toYaml and the like. Not here: charts
// within charts, hooks, tpl, lookup, Capabilities.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/xeipuuv/gojsonschema"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

// As chart.Metadata of Helm has them in a template, as far as they are used.
type chartFile struct {
	Name, Version, AppVersion string
}

type files struct{ folder string }

func (f files) Get(name string) string { return string(read(filepath.Join(f.folder, name))) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func read(name string) []byte {
	text, err := os.ReadFile(name)
	check(err)
	return text
}

func load(name string, into any) { check(yaml.UnmarshalStrict(read(name), into)) }

// merge lays what is given over the defaults: objects member by member, null removes, all else replaces.
func merge(defaults, given object) object {
	for key, value := range given {
		before, hadObject := defaults[key].(object)
		after, isObject := value.(object)
		switch {
		case value == nil:
			delete(defaults, key)
		case hadObject && isObject:
			merge(before, after)
		default:
			defaults[key] = value
		}
	}
	return defaults
}

func validate(schema []byte, values object) {
	result, err := gojsonschema.Validate(gojsonschema.NewBytesLoader(schema), gojsonschema.NewGoLoader(values))
	check(err)
	for _, fault := range result.Errors() {
		err = errors.Join(err, fmt.Errorf("values: %s", fault))
	}
	check(err)
}

func functions(all *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env") // Helm has neither
	delete(f, "expandenv")
	f["include"] = func(name string, data any) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	f["required"] = func(message string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	f["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	f["fromYaml"] = func(text string) (value object, err error) { return value, yaml.Unmarshal([]byte(text), &value) }
	f["fromJsonArray"] = func(text string) (value []any, err error) { return value, json.Unmarshal([]byte(text), &value) }
	return f
}

func main() {
	folder := os.Args[1]
	var chart chartFile
	check(yaml.Unmarshal(read(filepath.Join(folder, "Chart.yaml")), &chart))
	values := object{}
	load(filepath.Join(folder, "values.yaml"), &values)
	for _, name := range os.Args[4:] {
		given := object{}
		load(name, &given)
		merge(values, given)
	}
	validate(read(filepath.Join(folder, "values.schema.json")), values)

	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	names, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	check(err)
	sort.Strings(names)
	for _, name := range names {
		_, err = all.New(name).Parse(string(read(name)))
		check(err)
	}
	for _, name := range names {
		var out strings.Builder
		check(all.ExecuteTemplate(&out, name, object{
			"Values": values, "Chart": chart, "Files": files{folder},
			"Release": object{"Name": os.Args[2], "Namespace": os.Args[3], "Service": "Helm", "IsInstall": true, "Revision": 1},
		}))
		text := strings.ReplaceAll(out.String(), "<no value>", "") // as Helm does
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", filepath.Base(name), strings.TrimPrefix(strings.TrimSpace(text), "---\n"))
		}
	}
}
