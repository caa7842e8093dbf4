// SPDX-License-Identifier: MIT
package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// etcd's concurrency.Mutex: one client for all, a session for each caller (a lock belongs to a
// session), made before its first call and renewed by the client.
type etcdPeer struct {
	client *clientv3.Client
	lease  time.Duration
}

type etcdCaller struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
	renewed bool
}

func newEtcd(lease time.Duration, members []string) (peer, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: members, Logger: zap.NewNop(),
		DialTimeout: 5 * time.Second})
	return &etcdPeer{client, lease}, err
}

func (p *etcdPeer) newSession(renewed bool) (caller, error) {
	ttl := concurrency.WithTTL(int(p.lease / time.Second))
	session, err := concurrency.NewSession(p.client, ttl)
	if err != nil {
		return nil, err
	}
	return &etcdCaller{session: session, renewed: renewed}, nil
}

func (p *etcdPeer) newCaller() (caller, error) { return p.newSession(true) }
func (p *etcdPeer) newHolder() (caller, error) { return p.newSession(false) }

func (c *etcdCaller) acquire(name string) error {
	c.mutex = concurrency.NewMutex(c.session, name)
	err := c.mutex.Lock(context.Background())
	if err == nil && !c.renewed {
		c.session.Orphan()
	}
	return err
}

func (c *etcdCaller) release() error { return c.mutex.Unlock(context.Background()) }
