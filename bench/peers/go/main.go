// SPDX-License-Identifier: MIT

// Redsync and etcd's lock as peers: peers WAY LEASE_MS HOST:PORT...
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A caller has at most one lock at a time.
type caller interface {
	acquire(name string) error
	release() error
}

type peer interface {
	newCaller() (caller, error)
	// For a lock that nobody renews: its lease ends by itself.
	newHolder() (caller, error)
}

type calls struct {
	acquired, released []int64
	inTime             int
	failed, overlaps   int
	err                string
}

func (c *calls) note(err error) {
	c.failed++
	if c.err == "" {
		c.err = err.Error()
	}
}

// One caller's calls until the end. Two that hold one lock meet at the guard's file.
func call(c caller, end time.Time, section time.Duration, name, guard string) (result calls) {
	start := time.Now()
	for time.Now().Before(end) {
		if err := c.acquire(name); err != nil {
			result.note(err)
			continue
		}
		granted := time.Now()
		result.acquired = append(result.acquired, granted.Sub(start).Microseconds())
		if granted.Before(end) {
			result.inTime++
		}
		alone := true
		if guard != "-" {
			file, err := os.OpenFile(guard, os.O_CREATE|os.O_EXCL, 0o600)
			alone = err == nil
			if alone {
				file.Close()
			} else {
				result.overlaps++
			}
		}
		if section > 0 {
			time.Sleep(section)
		}
		if guard != "-" && alone {
			os.Remove(guard)
		}
		start = time.Now()
		if err := c.release(); err != nil {
			result.note(err)
		} else {
			result.released = append(result.released, time.Since(start).Microseconds())
		}
		start = time.Now()
	}
	return result
}

// run MS CALLERS SECTION_MS NAME GUARD
func run(p peer, callers map[int]caller, words []string) (map[string]any, error) {
	length, _ := strconv.Atoi(words[1])
	count, _ := strconv.Atoi(words[2])
	section, _ := strconv.Atoi(words[3])
	for i := 0; i < count; i++ {
		if callers[i] != nil {
			continue
		}
		made, err := p.newCaller()
		if err != nil {
			return nil, err
		}
		callers[i] = made
	}
	results := make([]calls, count)
	start := time.Now()
	end := start.Add(time.Duration(length) * time.Millisecond)
	var group sync.WaitGroup
	for i := range results {
		name := words[4]
		if strings.HasSuffix(name, "-") {
			name += strconv.Itoa(i)
		}
		group.Add(1)
		go func() {
			defer group.Done()
			pause := time.Duration(section) * time.Millisecond
			results[i] = call(callers[i], end, pause, name, words[5])
		}()
	}
	group.Wait()
	acquired, released := []int64{}, []int64{}
	grants := []int{}
	failed, overlaps, text := 0, 0, ""
	for _, one := range results {
		acquired = append(acquired, one.acquired...)
		released = append(released, one.released...)
		grants = append(grants, one.inTime)
		failed += one.failed
		overlaps += one.overlaps
		if text == "" {
			text = one.err
		}
	}
	return map[string]any{"acquire_us": acquired, "release_us": released, "grants": grants,
		"failed": failed, "overlaps": overlaps, "error": text}, nil
}

func versions(modules ...string) string {
	info, _ := debug.ReadBuildInfo()
	text := []string{}
	for _, module := range modules {
		for _, one := range info.Deps {
			if one.Path == module {
				text = append(text, module+" "+one.Version)
			}
		}
	}
	return strings.Join(append(text, info.GoVersion), ", ")
}

func say(what map[string]any) {
	text, _ := json.Marshal(what)
	fmt.Println(string(text))
}

// What a call came to, and how long it took.
func outcome(word string, start time.Time, err error) {
	result := map[string]any{word: err == nil, "us": time.Since(start).Microseconds()}
	if err != nil {
		result["error"] = err.Error()
	}
	say(result)
}

func main() {
	lease, _ := strconv.Atoi(os.Args[2])
	length := time.Duration(lease) * time.Millisecond
	var p peer
	var err error
	version := ""
	if os.Args[1] == "etcd" {
		p, err = newEtcd(length, os.Args[3:])
		version = versions("go.etcd.io/etcd/client/v3")
	} else {
		p = newRedsync(length, os.Args[1] == "redsync-fail-fast", os.Args[3:])
		version = versions("github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say(map[string]any{"version": version})
	callers := map[int]caller{}
	var holder caller
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		words := strings.Fields(orders.Text())
		start := time.Now()
		switch words[0] {
		case "run":
			result, err := run(p, callers, words)
			if err != nil {
				result = map[string]any{"error": err.Error()}
			}
			say(result)
		case "hold":
			made, err := p.newHolder()
			if err == nil {
				holder = made
				err = holder.acquire(words[1])
			}
			outcome("held", start, err)
		case "release":
			outcome("released", start, holder.release())
		}
	}
}
