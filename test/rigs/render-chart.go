// Renders the templates of a Helm chart with Go's own text/template, as Helm does, for tests on machines without Helm. It has only the
// functions of Helm that Berth's charts use. Input, as JSON: {"templates": {path: text}, "data": {"Values": …, "Release": …, "Chart": …}}.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"text/template"
)

type input struct {
	Templates map[string]string      `json:"templates"`
	Data      map[string]interface{} `json:"data"`
}

var functions = template.FuncMap{
	"toYaml": toYaml,
	"nindent": func(spaces int, text string) string {
		pad := strings.Repeat(" ", spaces)
		return "\n" + pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	},
	"quote": func(value interface{}) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
	"default": func(otherwise, value interface{}) interface{} {
		if value == nil || value == "" {
			return otherwise
		}
		return value
	},
	"required": func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	},
}

// Like Helm's, it writes the outermost list or map in block style, one item a line. Below that it writes JSON, which is YAML, too.
func toYaml(value interface{}) (string, error) {
	lines := []string{}
	add := func(prefix string, item interface{}) error {
		text, err := json.Marshal(item)
		lines = append(lines, prefix+string(text))
		return err
	}
	switch outer := value.(type) {
	case []interface{}:
		for _, item := range outer {
			if err := add("- ", item); err != nil {
				return "", err
			}
		}
		return strings.Join(lines, "\n"), nil
	case map[string]interface{}:
		for key, item := range outer {
			if err := add(key+": ", item); err != nil {
				return "", err
			}
		}
	default:
		err := add("", value)
		return strings.Join(lines, "\n"), err
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n"), nil
}

func main() {
	var given input
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		fail(err)
	}
	paths := make([]string, 0, len(given.Templates))
	for path := range given.Templates {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		// Helm sets no option for missing keys either, but a value that values.yaml lacks is a mistake in these charts.
		made, err := template.New(path).Option("missingkey=error").Funcs(functions).Parse(given.Templates[path])
		if err != nil {
			fail(err)
		}
		fmt.Println("---")
		if err := made.Execute(os.Stdout, given.Data); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
