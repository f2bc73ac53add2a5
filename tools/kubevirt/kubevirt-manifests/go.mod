module vmwright.dev/tools/kubevirt/kubevirt-manifests
go 1.23.0
