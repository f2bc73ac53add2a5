// Comparator of `make bench ONLY=vsphere`: the same jobs as bench/vsphere/ours.ts, written idiomatically with govmomi.
// "one" repeatedly reads properties of one machine; "all" reads those of all machines with a container view.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
)

var machine = []string{"VirtualMachine"}

func main() {
	job := flag.String("job", "one", "one or all")
	properties := flag.String("properties", "name", "comma-separated properties to read")
	machines := flag.Int("machines", 0, "expected number of machines")
	warm := flag.Int("warm", 0, "number of warm-up reads")
	times := flag.Int("times", 1, "number of measured reads")
	flag.Parse()
	ctx := context.Background()

	client, logout, err := connect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer logout()
	names := strings.Split(*properties, ",")
	all, err := readAll(ctx, client, names)
	if err != nil {
		log.Fatal(err)
	}
	if len(all) != *machines {
		log.Fatalf("read %d machines instead of %d", len(all), *machines)
	}

	read := func() error {
		_, err := readAll(ctx, client, names)
		return err
	}
	if *job == "one" {
		collector := property.DefaultCollector(client)
		read = func() error {
			var vm mo.VirtualMachine
			return collector.RetrieveOne(ctx, all[0].Self, names, &vm)
		}
	}
	if err := measure(read, *warm, *times); err != nil {
		log.Fatal(err)
	}
}

func connect(ctx context.Context) (*vim25.Client, func(), error) {
	address, err := soap.ParseURL(os.Getenv("VC_HOST"))
	if err != nil {
		return nil, nil, err
	}
	wire := soap.NewClient(address, false)
	if err := wire.SetRootCAs(os.Getenv("VC_CA")); err != nil {
		return nil, nil, err
	}
	client, err := vim25.NewClient(ctx, wire)
	if err != nil {
		return nil, nil, err
	}
	sessions := session.NewManager(client)
	if err := sessions.Login(ctx, url.UserPassword(os.Getenv("VC_USER"), os.Getenv("VC_PASS"))); err != nil {
		return nil, nil, err
	}
	return client, func() { _ = sessions.Logout(ctx) }, nil
}

func readAll(ctx context.Context, client *vim25.Client, names []string) ([]mo.VirtualMachine, error) {
	containerView, err := view.NewManager(client).CreateContainerView(ctx, client.ServiceContent.RootFolder, machine, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = containerView.Destroy(ctx) }()
	var all []mo.VirtualMachine
	err = containerView.Retrieve(ctx, machine, names, &all)
	return all, err
}

// measure prints the duration of each read and the total CPU time, in milliseconds.
func measure(read func() error, warm, times int) error {
	for range warm {
		if err := read(); err != nil {
			return err
		}
	}
	took := make([]string, 0, times)
	before := cpu()
	for range times {
		started := time.Now()
		if err := read(); err != nil {
			return err
		}
		took = append(took, milliseconds(time.Since(started)))
	}
	used := cpu() - before
	fmt.Println("took", strings.Join(took, " "))
	fmt.Println("cpu", milliseconds(used))
	return nil
}

// cpu returns the user and system CPU time of all threads of this process.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.6f", float64(d.Nanoseconds())/1e6)
}
