// render prints what Helm would make of a chart: Helm's own template engine (Go's text/template with
// sprig's functions and the few that Helm adds), without Helm, which Debian does not have. It knows no
// subcharts, hooks or cluster; `lookup` is not there, and of .Capabilities only the cluster's version, so a
// chart that uses more fails.
//
//	render CHART NAMESPACE RELEASE VALUES.yaml KUBE_VERSION
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type object = map[string]interface{}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func readYaml(path string) object {
	text, err := os.ReadFile(path)
	fail(err)
	value := object{}
	fail(yaml.Unmarshal(text, &value))
	return value
}

// files is what a chart may read of its own folder.
type files struct{ folder string }

func (f files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(f.folder, name))
	return string(text), err
}

// merge puts the user's values over the chart's: objects key by key, everything else whole, and null
// takes a key away.
func merge(base, over object) object {
	for key, value := range over {
		old, isOld := base[key].(object)
		new, isNew := value.(object)
		switch {
		case value == nil:
			delete(base, key)
		case isOld && isNew:
			base[key] = merge(old, new)
		default:
			base[key] = value
		}
	}
	return base
}

func toYaml(value interface{}) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// parse reads the templates; like Helm's, a key that is not there is empty and not an error.
func parse(files []string) *template.Template {
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv"} {
		delete(functions, name)
	}
	functions["toYaml"] = toYaml
	functions["fromJsonArray"] = func(text string) ([]interface{}, error) {
		var list []interface{}
		err := json.Unmarshal([]byte(text), &list)
		return list, err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text strings.Builder
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	functions["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", why)
		}
		return value, nil
	}
	all.Funcs(functions)
	for _, file := range files {
		text, err := os.ReadFile(file)
		fail(err)
		_, err = all.New(file).Parse(string(text))
		fail(err)
	}
	return all
}

func templateFiles(chart string) []string {
	var files []string
	fail(filepath.Walk(filepath.Join(chart, "templates"), func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	sort.Strings(files)
	return files
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: render CHART NAMESPACE RELEASE VALUES.yaml KUBE_VERSION")
		os.Exit(2)
	}
	chart, facts := os.Args[1], readYaml(filepath.Join(os.Args[1], "Chart.yaml"))
	data := object{
		"Values":       merge(readYaml(filepath.Join(chart, "values.yaml")), readYaml(os.Args[4])),
		"Files":        files{chart},
		"Capabilities": object{"KubeVersion": object{"Version": os.Args[5]}},
		"Chart":        object{"Name": facts["name"], "Version": facts["version"], "AppVersion": facts["appVersion"]},
		"Release": object{"Name": os.Args[3], "Namespace": os.Args[2], "Service": "Helm",
			"IsInstall": true, "IsUpgrade": false, "Revision": 1},
	}
	names := templateFiles(chart)
	all := parse(names)
	for _, file := range names {
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		var text bytes.Buffer
		fail(all.ExecuteTemplate(&text, file, data))
		fmt.Printf("---\n# Source: %s\n%s\n", filepath.Base(file), text.String())
	}
}
