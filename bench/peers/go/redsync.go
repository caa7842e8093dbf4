// SPDX-License-Identifier: MIT
package main

import (
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
)

// As its README shows: a pool of go-redis for each node, 32 tries with pauses of 50 to 250 ms. With
// fail fast (an option) it does not wait for nodes beyond the quorum.
type redsyncPeer struct {
	sync    *redsync.Redsync
	options []redsync.Option
}

type redsyncCaller struct {
	peer  *redsyncPeer
	mutex *redsync.Mutex
}

func newRedsync(lease time.Duration, failFast bool, nodes []string) *redsyncPeer {
	var pools []redis.Pool
	for _, node := range nodes {
		pools = append(pools, goredis.NewPool(goredislib.NewClient(&goredislib.Options{Addr: node})))
	}
	options := []redsync.Option{redsync.WithExpiry(lease)}
	if failFast {
		options = append(options, redsync.WithFailFast(true))
	}
	return &redsyncPeer{redsync.New(pools...), options}
}

func (p *redsyncPeer) newCaller() (caller, error) { return &redsyncCaller{peer: p}, nil }
func (p *redsyncPeer) newHolder() (caller, error) { return p.newCaller() }

func (c *redsyncCaller) acquire(name string) error {
	c.mutex = c.peer.sync.NewMutex(name, c.peer.options...)
	return c.mutex.Lock()
}

func (c *redsyncCaller) release() error {
	released, err := c.mutex.Unlock()
	if !released && err == nil {
		err = errors.New("not released")
	}
	if released {
		return nil
	}
	return err
}
