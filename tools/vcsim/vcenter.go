package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// vcenter is the simulator with the state of its control port.
type vcenter struct {
	model    *simulator.Model
	address  *url.URL
	listener net.Listener
	server   *http.Server

	connections *connections
	calls       *calls
	faults      *faults
	methods     *delays
	tasks       *tasks
	sessions    *sessions
	statuses    *statuses
	inventory   *inventory
	scheduled   *scheduledTasks
}

func newVCenter(config config, socket net.Listener) (*vcenter, error) {
	if err := config.model.Create(); err != nil {
		return nil, fmt.Errorf("cannot create the inventory: %w", err)
	}
	service := config.model.Service
	registry := config.model.Map()
	if config.instanceUUID != "" {
		registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content.About.InstanceUuid = config.instanceUUID
	}

	address := &url.URL{Scheme: "http", Host: socket.Addr().String(), Path: vim25.Path}
	connections := newConnections(socket)
	listener := net.Listener(connections)
	if config.tls {
		certificate, err := certificateFor(socket.Addr(), config.tlsFolder)
		if err != nil {
			return nil, err
		}
		address.Scheme = "https"
		listener = tls.NewListener(connections, &tls.Config{
			Certificates: []tls.Certificate{certificate},
			NextProtos:   []string{"http/1.1"},
		})
	}

	// The simulator takes the credentials of the only user from its listen address.
	login := *address
	login.User = url.UserPassword(config.username, config.password)
	service.Listen = &login
	service.RegisterSDK(registry, vim25.Path+"/vimService")
	service.ServeMux.HandleFunc(vim25.Path+"/vimServiceVersions.xml", service.ServiceVersions)
	registry.SessionManager().ServiceHostName = address.Host

	waits := newWaits()
	registry.Put(waits)
	registry.Put(newCollector(config.model.ServiceContent.PropertyCollector))

	inventory := &inventory{service: service}
	if err := inventory.makeTemplates(config.templates); err != nil {
		return nil, err
	}
	faults := &faults{inventory: inventory}
	tasks := newTasks(faults)
	registry.AddHandler(tasks)

	v := &vcenter{
		model:       config.model,
		address:     address,
		listener:    listener,
		connections: connections,
		calls:       &calls{},
		faults:      faults,
		methods:     newDelays(),
		tasks:       tasks,
		sessions:    newSessions(service, waits),
		statuses:    &statuses{},
		inventory:   inventory,
		scheduled:   newScheduledTasks(inventory, *config.model.ServiceContent.ScheduledTaskManager),
	}
	v.sessions.setTimeout(config.sessionTimeout)
	// The simulator calls this handler before it executes a call.
	registry.Handler = func(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		v.sessions.observe(ctx, method)
		return folderHandler(ctx, method), rejectMissing(ctx, method)
	}
	v.server = &http.Server{Handler: &front{vcenter: v, waits: waits, next: service.ServeMux}}
	return v, nil
}

func (v *vcenter) url() string { return v.address.String() }

func (v *vcenter) serve() error { return v.server.Serve(v.listener) }

// close stops the server and removes the simulator's datastore files.
func (v *vcenter) close() {
	_ = v.server.Close()
	v.model.Remove()
}
