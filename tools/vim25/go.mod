module vmwright.dev/tools/vim25

go 1.25.0

require github.com/vmware/govmomi v0.56.0
