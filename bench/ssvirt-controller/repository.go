package main

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// VM is a row of the table vms.
type VM struct {
	ID          string `gorm:"type:varchar(255);primaryKey"`
	Name        string `gorm:"not null"`
	Description string
	VAppID      string `gorm:"column:vapp_id;type:varchar(255);not null"`
	VMName      string `gorm:"column:vm_name"`
	Namespace   string
	Status      string
	CPUCount    *int `gorm:"column:cpu_count"`
	MemoryMB    *int `gorm:"column:memory_mb"`
	GuestOS     string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	DeletedAt   gorm.DeletedAt `gorm:"index"`
}

// TableName sets the table name, which gorm would otherwise derive from the name of the type.
func (VM) TableName() string { return "vms" }

// VMRepository reads and writes rows one at a time.
type VMRepository struct {
	db *gorm.DB
}

func (r *VMRepository) GetByNamespaceAndVMName(ctx context.Context, namespace, vmName string) (*VM, error) {
	var vm VM
	err := r.db.WithContext(ctx).Where("namespace = ? AND vm_name = ?", namespace, vmName).First(&vm).Error
	return &vm, err
}

func (r *VMRepository) GetByVAppAndVMName(ctx context.Context, vappID, vmName string) (*VM, error) {
	var vm VM
	err := r.db.WithContext(ctx).Where("vapp_id = ? AND vm_name = ?", vappID, vmName).First(&vm).Error
	return &vm, err
}

func (r *VMRepository) UpdateStatus(ctx context.Context, vmID string, status string) error {
	return r.db.WithContext(ctx).Model(&VM{}).Where("id = ?", vmID).
		Updates(map[string]any{"status": status, "updated_at": time.Now()}).Error
}
