package main

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/types"
)

const (
	defaultGpuModel = "NVIDIA A100"
	gpuVendor       = "NVIDIA Corporation"
	gpuVendorID     = 0x10de
	gpuDeviceID     = 0x20b0
	gpuClass        = 0x0302 // 3D controller
	gpuMemoryKb     = 40 << 20
	gpuBus          = 0xaf
	gpuBusPrefix    = "0000:af:"
	maxGpus         = 32 // slots on a PCI bus
)

// gpus sets a host's accelerators in the three properties where vCenter reports them: PCI devices, graphics, and PCI passthrough.
func (c *changes) gpus(devices []types.HostPciDevice, count int, model string) {
	var kept []types.HostPciDevice
	for _, device := range devices {
		if !strings.HasPrefix(device.Id, gpuBusPrefix) {
			kept = append(kept, device)
		}
	}
	var graphics []types.HostGraphicsInfo
	var passthrough []types.BaseHostPciPassthruInfo
	for slot := range count {
		id := fmt.Sprintf("%s%02x.0", gpuBusPrefix, slot)
		kept = append(kept, types.HostPciDevice{
			Id: id, ClassId: gpuClass, Bus: gpuBus, Slot: byte(slot),
			VendorId: gpuVendorID, DeviceId: gpuDeviceID, VendorName: gpuVendor, DeviceName: model,
		})
		graphics = append(graphics, types.HostGraphicsInfo{
			DeviceName: model, VendorName: gpuVendor, PciId: id, MemorySizeInKB: gpuMemoryKb,
			GraphicsType: string(types.HostGraphicsInfoGraphicsTypeDirect),
		})
		passthrough = append(passthrough, &types.HostPciPassthruInfo{
			Id: id, DependentDevice: id, PassthruEnabled: true, PassthruCapable: true, PassthruActive: true,
		})
	}
	c.set("hardware.pciDevice", kept)
	c.set("config.graphicsInfo", graphics)
	c.set("config.pciPassthruInfo", passthrough)
}
