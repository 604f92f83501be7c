// Tracks one event: go run track.go DIRECTORY NAME
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		println(err.Error())
		os.Exit(74)
	}
}

func main() {
	directory, name := os.Args[1], os.Args[2]
	// The spool is the nearest directory above in which the agent says what it accepts. Where anybody may write, it says nothing.
	for level := 0; level <= 16; level++ {
		up := directory + strings.Repeat("/..", level)
		if status, err := os.Stat(up); err == nil && status.Mode().Perm()&0o002 != 0 {
			continue
		}
		text, err := os.ReadFile(up + "/.spoolship/state")
		if err != nil {
			continue
		}
		if word := strings.Split(string(text), "\n")[0]; word == "critical" || word == "none" {
			os.Exit(75)
		}
		break
	}
	event, err := json.Marshal(map[string]any{"name": name, "timestamp": time.Now().UTC().Format(time.RFC3339Nano),
		"pid": os.Getpid(), "properties": map[string]any{"language": "Go", "number": 1.5}})
	check(err)
	file, err := os.CreateTemp(directory, ".event-*.tmp")
	check(err)
	_, err = file.Write(event)
	check(err)
	check(file.Chmod(0o640)) // The agent reads as the group.
	check(file.Sync())
	hidden := filepath.Base(file.Name())
	check(os.Rename(file.Name(), directory+"/"+strings.TrimSuffix(hidden[1:], ".tmp")+".json"))
	folder, err := os.Open(directory)
	if os.IsPermission(err) {
		syscall.Sync() // The drop box incoming/ lets nobody open it.
		return
	}
	check(err)
	check(folder.Sync()) // The new name survives a power cut as well.
}
