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
	// firstPassthroughKey is the key that vCenter gives to the first PCI device of a VM.
	firstPassthroughKey = 13000
)

// gpuModes are the graphics types of the modes in which a host can offer its GPUs to VMs.
var gpuModes = map[string]types.HostGraphicsInfoGraphicsType{
	"passthrough": types.HostGraphicsInfoGraphicsTypeDirect,
	"vgpu":        types.HostGraphicsInfoGraphicsTypeSharedDirect,
	"graphics":    types.HostGraphicsInfoGraphicsTypeBasic,
}

// gpus sets a host's accelerators in the three properties where vCenter reports them: PCI devices, graphics, and PCI passthrough.
func (c *changes) gpus(devices []types.HostPciDevice, count int, model, mode string) {
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
			GraphicsType: string(gpuModes[mode]),
		})
		isPassthrough := mode == "passthrough"
		passthrough = append(passthrough, &types.HostPciPassthruInfo{
			Id: id, DependentDevice: id, PassthruCapable: true, PassthruEnabled: isPassthrough, PassthruActive: isPassthrough,
		})
	}
	c.set("hardware.pciDevice", kept)
	c.set("config.graphicsInfo", graphics)
	c.set("config.pciPassthruInfo", passthrough)
}

// pciDevices replaces the PCI devices and vGPUs that are attached to a VM.
func (c *changes) pciDevices(devices []types.BaseVirtualDevice, attached []pciDevice) {
	var kept []types.BaseVirtualDevice
	for _, device := range devices {
		if _, isPci := device.(*types.VirtualPCIPassthrough); !isPci {
			kept = append(kept, device)
		}
	}
	for index, device := range attached {
		kept = append(kept, &types.VirtualPCIPassthrough{VirtualDevice: types.VirtualDevice{
			Key: firstPassthroughKey + int32(index), Backing: device.backing(),
		}})
	}
	c.set("config.hardware.device", kept)
}

// pciDevice is a PCI device of the host, by its id, or a vGPU, by the name of its profile.
type pciDevice struct {
	ID      string `json:"id"`
	Dynamic bool   `json:"dynamic"`
	Vgpu    string `json:"vgpu"`
}

func (d pciDevice) check() error {
	if (d.ID == "") == (d.Vgpu == "") {
		return fmt.Errorf("each of pciDevices must have either id, a PCI id such as %s00.0, or vgpu, a profile", gpuBusPrefix)
	}
	return nil
}

func (d pciDevice) backing() types.BaseVirtualDeviceBackingInfo {
	switch {
	case d.Vgpu != "":
		return &types.VirtualPCIPassthroughVmiopBackingInfo{Vgpu: d.Vgpu}
	case d.Dynamic:
		return &types.VirtualPCIPassthroughDynamicBackingInfo{
			AllowedDevice: []types.VirtualPCIPassthroughAllowedDevice{{VendorId: gpuVendorID, DeviceId: gpuDeviceID}},
			AssignedId:    d.ID,
		}
	}
	return &types.VirtualPCIPassthroughDeviceBackingInfo{
		Id: d.ID, DeviceId: fmt.Sprintf("%x", gpuDeviceID), SystemId: "BYPASS", VendorId: gpuVendorID,
	}
}
