package main

import "github.com/prometheus/client_golang/prometheus"

var (
	statusUpdates = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ssvirt_vm_status_updates_total",
		Help: "Total number of VM status updates processed",
	}, []string{"namespace", "status", "result"})

	updateDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ssvirt_vm_status_update_duration_seconds",
		Help: "Time taken to update VM status in database",
	}, []string{"namespace"})

	reconcileErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ssvirt_vm_reconcile_errors_total",
		Help: "Total number of VM reconciliation errors",
	}, []string{"namespace", "error_type"})
)
