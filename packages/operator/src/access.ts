import { type Access, inClusterAccess, kubeconfigAccess, type World } from '@vmwright/runtime';

/** Selects a cluster. */
export interface ClusterOptions {
  /** Path of the kubeconfig. @default `$KUBECONFIG`, else the pod's service account, else `~/.kube/config` */
  readonly kubeconfig?: string | undefined;
  /** Context of the kubeconfig. @default the current context */
  readonly context?: string | undefined;
}

/** Returns access to the cluster that the kubeconfig selects, or to the cluster in which this program runs as a pod. */
export function clusterAccess(world: World, { kubeconfig, context }: ClusterOptions = {}): Promise<Access> {
  const isInPod =
    (kubeconfig ?? context ?? process.env.KUBECONFIG) === undefined &&
    process.env.KUBERNETES_SERVICE_HOST !== undefined;
  return isInPod ? inClusterAccess({ clock: world }) : kubeconfigAccess({ world, path: kubeconfig, context });
}
