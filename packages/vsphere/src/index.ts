/** A typed vSphere (vim25) client. Knows vCenter; knows no Kubernetes. */
export {};
