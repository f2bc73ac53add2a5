/** The private cloud: its REST API, a server that runs it, a client. Knows no Kubernetes. */
export {};
